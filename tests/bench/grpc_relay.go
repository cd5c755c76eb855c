// A plain gRPC relay as one writes it in Go: every method is unknown to it, messages pass as bytes.
// For tests/bench only; builds with Debian's golang-google-grpc-dev (1.33) in GOPATH mode.
//
//	grpc_relay LISTEN_PATH RUNTIME_PATH
package main

import (
	"context"
	"io"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

const (
	messageBytesMax = 64 << 20
	windowBytes     = 32 << 20
	streamsMax      = 10000
)

type message struct{ bytes []byte }

type codec struct{}

func (codec) Marshal(v interface{}) ([]byte, error) { return v.(*message).bytes, nil }

func (codec) Unmarshal(bytes []byte, v interface{}) error {
	v.(*message).bytes = bytes
	return nil
}

func (codec) Name() string   { return "proto" }
func (codec) String() string { return "proto" }

type relay struct{ runtime *grpc.ClientConn }

func requests(from grpc.ServerStream, to grpc.ClientStream) error {
	for {
		var m message
		err := from.RecvMsg(&m)
		if err == io.EOF {
			return to.CloseSend()
		}
		if err != nil {
			return err
		}
		if err = to.SendMsg(&m); err != nil {
			return nil // the answer says why
		}
	}
}

func answers(from grpc.ClientStream, to grpc.ServerStream) error {
	if header, err := from.Header(); err == nil {
		if err = to.SendHeader(header); err != nil {
			return err
		}
	}
	for {
		var m message
		err := from.RecvMsg(&m)
		if err != nil {
			to.SetTrailer(from.Trailer())
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err = to.SendMsg(&m); err != nil {
			return err
		}
	}
}

func (r relay) handle(_ interface{}, stream grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	if header, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, header)
	}
	method, _ := grpc.MethodFromServerStream(stream)
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	call, err := r.runtime.NewStream(ctx, desc, method, grpc.ForceCodec(codec{}))
	if err != nil {
		return err
	}
	go func() {
		if requests(stream, call) != nil {
			cancel()
		}
	}()
	return answers(call, stream)
}

func main() {
	if len(os.Args) != 3 {
		log.Fatalf("usage: %s LISTEN_PATH RUNTIME_PATH", os.Args[0])
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", os.Args[2])
	}
	runtime, err := grpc.Dial("passthrough:///runtime", grpc.WithInsecure(),
		grpc.WithContextDialer(dial), grpc.WithInitialWindowSize(windowBytes),
		grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytesMax),
			grpc.MaxCallSendMsgSize(messageBytesMax)))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.CustomCodec(codec{}),
		grpc.UnknownServiceHandler(relay{runtime}.handle),
		grpc.MaxConcurrentStreams(streamsMax),
		grpc.MaxRecvMsgSize(messageBytesMax), grpc.MaxSendMsgSize(messageBytesMax),
		grpc.InitialWindowSize(windowBytes), grpc.InitialConnWindowSize(windowBytes))
	log.Fatal(server.Serve(listener))
}
