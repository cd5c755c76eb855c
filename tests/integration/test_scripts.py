"""Shell scripts without what shellcheck finds."""

import subprocess

import pytest

from shim import ROOT

SCRIPTS = sorted(path for folder in (".ci", "config", "tests") for path in (ROOT / folder).rglob("*")
                 if path.is_file() and path.read_bytes()[:200].startswith(
                     (b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh", b"# shellcheck shell=")))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shellcheck(script):
    done = subprocess.run(["shellcheck", "-x", script], check=False, capture_output=True, text=True,
                          cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
