/*
 * The page for people: asks /json/NAME again and again, and shows what it says. What these documents have in
 * them is in tests/schemas/.
 *
 * Texts of the node's go into the page as text nodes alone, never as markup. A row that is the same as before
 * is left alone, so that what a reader has selected, or stands on, stays.
 */
"use strict";

const EVERY_MS = 2000;      // after an answer it is asked again; and at most a tenth of the time is spent on it:
const REST = 10;
const ANSWER_MS = 10000;    // one that takes longer has failed
const ROWS = 50;            // of a page of a list
const PARTS_MAX = 100;      // of the list of resources, which comes in pieces where very many devices are held

/* ---- elements ---- */

/* h("td", {class: "short"}, "text", element, null): null is left out. */
function h(name, attributes, ...children) {
    const element = document.createElement(name);

    for (const [key, value] of Object.entries(attributes || {})) {
        if (typeof value === "function")
            element.addEventListener(key, value);
        else if (value !== null && value !== false)
            element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
}

function setText(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}

/* Rows of `parent`, one for each item, in order: one whose item is as before is not touched. */
function fill(parent, items, keyOf, make) {
    const before = new Map([...parent.children].map((row) => [row.dataset.key, row]));
    const focused = parent.contains(document.activeElement) && document.activeElement.dataset.focus;
    const seen = new Set();
    let place = parent.firstChild;

    for (const item of items) {
        const text = JSON.stringify(item);
        let key = keyOf(item), row;

        while (seen.has(key))
            key += "'";
        seen.add(key);
        row = before.get(key);
        if (!row || row.made !== text) {
            const made = make(item);

            made.dataset.key = key;
            made.made = text;
            if (row === place)
                place = place && place.nextSibling;
            if (row)
                row.remove();
            row = made;
        }
        if (row === place)
            place = place.nextSibling;
        else
            parent.insertBefore(row, place);
    }
    for (const [key, row] of before) {
        if (!seen.has(key))
            row.remove();
    }
    if (focused && !parent.contains(document.activeElement)) {
        const again = [...parent.querySelectorAll("[data-focus]")].find((one) => one.dataset.focus === focused);

        if (again)
            again.focus();
    }
}

/* ---- words ---- */

let ahead = 0;  // of this clock the node's is, in ms

function ageOf(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));

    if (s < 120)
        return `${s}s`;
    if (s < 3600)
        return `${Math.floor(s / 60)}m${s % 60}s`;
    if (s < 24 * 3600)
        return `${Math.floor(s / 3600)}h${Math.floor(s / 60) % 60}m`;
    return `${Math.floor(s / 86400)}d${Math.floor(s / 3600) % 24}h`;
}

function seconds(count) {
    return ageOf(count * 1000);
}

/* How long ago, which goes on by itself. */
function age(time) {
    return time === null ? null
        : h("time", {datetime: time, title: time}, ageOf(Date.now() + ahead - Date.parse(time)));
}

function agesGoOn() {
    for (const one of document.querySelectorAll("time[datetime]"))
        setText(one, ageOf(Date.now() + ahead - Date.parse(one.dateTime)));
}

function mark(kind, word) {
    return word ? h("span", {class: `mark ${kind}`}, word) : null;
}

function podName(namespace, name, uid) {
    return name ? `${namespace || "?"}/${name}` : `?/${uid}`;
}

function more(list, total) {
    return total > list.length ? ` and ${total - list.length} more` : "";
}

function count(n, one, many) {
    return `${n} ${n === 1 ? one : many}`;
}

/* ---- asking ---- */

class Unanswered extends Error {}

/* What was answered last, by path: {tag, value, text}. Only of what is asked in each turn. */
let answers = new Map();

async function ask(path, kept) {
    const had = answers.get(path);
    const response = await fetch(path, {
        cache: "no-store", headers: had ? {"If-None-Match": had.tag} : {}, signal: AbortSignal.timeout(ANSWER_MS)});
    const date = Date.parse(response.headers.get("Date"));

    if (!Number.isNaN(date) && Math.abs(Date.now() + ahead - date) > 1500)
        ahead = date - Date.now();
    if (response.status === 304) {
        kept.set(path, had);
        return had.value;
    }
    if (!response.ok)
        throw new Unanswered((await response.text()).trim());
    const text = await response.text();

    kept.set(path, {tag: response.headers.get("ETag"), value: JSON.parse(text)});
    return kept.get(path).value;
}

function pathOf(name, query) {
    const all = new URLSearchParams();

    for (const [key, value] of Object.entries(query || {})) {
        for (const one of [].concat(value))
            all.append(key, one);
    }
    return `/json/${name}?${all}`;
}

/* ---- sections ---- */

const sections = [];

/* One with a heading. show(items, note): items null: it is not there. */
class Section {
    constructor(id, title, options = {}) {
        this.title = title;
        this.none = options.none === undefined ? title[0].toLowerCase() + title.slice(1) : options.none;  // in the foot, if there is none
        this.note = h("span", {class: "quiet"});
        this.name = h("span", {}, title);
        this.element = h("section", {id, "aria-labelledby": `${id}-title`, hidden: true},
                         h("h2", {id: `${id}-title`}, this.name, this.note));
        sections.push(this);
    }

    shown(is, note = "") {
        this.element.hidden = !is;
        setText(this.note, note);
    }
}

/* columns: [name, class, make(item)]; the first names the row. */
class Table extends Section {
    constructor(id, title, columns, keyOf, options = {}) {
        super(id, title, options);
        this.columns = columns;
        this.keyOf = keyOf;
        this.isChosen = options.isChosen || (() => false);
        this.body = h("tbody", {role: "rowgroup"});
        this.element.append(h("table", {role: "table", "aria-labelledby": `${id}-title`},
            h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, ...columns.map(([name, kind]) =>
                h("th", {scope: "col", role: "columnheader", class: kind === "number" ? kind : null}, name)))),
            this.body));
    }

    show(items, note) {
        this.shown(items.length > 0, note);
        fill(this.body, items, this.keyOf, (item) => this.row(item));
        for (const row of this.body.children)
            row.classList.toggle("chosen", this.isChosen(row.dataset.key));
    }

    row(item) {
        return h("tr", {role: "row"}, ...this.columns.map(([name, kind, make], i) => {
            const made = [].concat(make(item)).filter((one) => one !== null && one !== "");

            return i === 0 ? h("th", {scope: "row", role: "rowheader", class: kind || null}, ...made)
                : h("td", {role: "cell", class: kind || null, "data-name": name},
                    made.length > 1 ? h("span", {}, ...made) : made[0]);
        }));
    }
}

/* A table of one page of a list, with its next and its previous page. */
class List extends Table {
    constructor(id, title, name, columns, keyOf, options = {}) {
        super(id, title, columns, keyOf, options);
        this.list = name;
        this.query = options.query || (() => ({}));
        this.places = [];  // of the pages before this one, and its own, but the first's
        this.next = [];    // that of the page behind this one; none: it is the last
        this.back = h("button", {type: "button", click: () => this.turn(-1)}, "Previous");
        this.forth = h("button", {type: "button", click: () => this.turn(1)}, "Next");
        this.where = h("span", {class: "quiet"});
        this.pager = h("div", {class: "pager", hidden: true}, this.back, this.forth, this.where);
        this.element.append(this.pager);
    }

    turn(by) {
        if (by < 0)
            this.places = this.places.slice(0, -1);
        else if (this.next.length > 0)
            this.places = [...this.places, this.next];
        this.next = [];  // not known yet: who presses twice turns one page
        again();
    }

    begin() {
        this.places = [];
    }

    async look(kept) {
        const places = this.places, after = places[places.length - 1] || [];
        let page;

        try {
            page = await ask(pathOf(this.list, {...this.query(), rows: ROWS, after}), kept);
        } catch (error) {
            if (!(error instanceof Unanswered) || after.length === 0)
                throw error;
            if (this.places === places)
                this.begin();  // the row behind which it began is gone
            return this.look(kept);
        }
        if (this.places !== places)
            return this.look(kept);  // it was turned meanwhile
        if (page.items.length === 0 && after.length > 0) {
            this.begin();
            return this.look(kept);
        }
        this.next = page.next;
        this.show(page.items, this.noteOf ? this.noteOf(page.items) : "");
        this.pager.hidden = this.places.length === 0 && page.next.length === 0;
        this.back.disabled = this.places.length === 0;
        this.forth.disabled = page.next.length === 0;
        setText(this.where, `page ${this.places.length + 1}`);
    }
}

/* ---- what is not as it should be ---- */

const troubles = new Table("troubles", "Not as it should be", [
    ["What", "short", (one) => mark("bad", one.what)],
    ["Since", "short", (one) => age(one.since)],
    ["Why", "", (one) => one.why],
], (one) => one.what + one.why, {none: null});

const shutdown = new Section("shutdown", "The machine goes down", {none: null});
const shutdownList = h("dl", {});
shutdown.element.append(h("div", {class: "waits"}, shutdownList));

const SHUTDOWN_STATES = {
    begun: "has begun", groups: "pods are ended", kubelet: "the kubelet ends the pods",
    over: "what was to be done is done"};

function showShutdown(is) {
    const under = is !== null && is.state !== "none";
    const rows = [];

    shutdown.shown(under);
    if (!under)
        return;
    rows.push(["state", `${SHUTDOWN_STATES[is.state] || is.state}, for `, age(is.since)]);
    if (is.group !== null)
        rows.push(["group", `${is.group.number} of ${is.group.of}`
                            + (is.group.priority === null ? "" : `, priority ${is.group.priority}`)
                            + `, ${seconds(is.group.leftSeconds)} left`]);
    rows.push(["pods", `${is.remaining} of ${is.pods} have not ended`]);
    if (is.firstRemaining.length > 0)
        rows.push(["first", is.firstRemaining.slice(0, 8).join(", ") + more(is.firstRemaining.slice(0, 8), is.remaining)]);
    shutdownList.replaceChildren(...rows.flatMap(([name, ...words]) => [h("dt", {}, name), h("dd", {}, ...words)]));
}

/* ---- what waits, and why ---- */

const waiting = new Section("waiting", "Waiting", {none: null});
const waitingList = h("ol", {class: "waits"});
const nothingWaits = h("p", {class: "quiet"}, "No container and no claim waits.");
waiting.element.append(waitingList, nothingWaits);

function reasonRows(reason) {
    return reason === null ? [] : [
        ["why", mark("warn", reason.word), reason.text ? ` ${reason.text}` : null],
        ["clears", reason.clears]];
}

function refusalRows(refusal) {
    return refusal === null ? [] : [
        ["refused", count(refusal.times, "time", "times"), ", last ", age(refusal.last), " ago",
         refusal.reason ? `: ${refusal.reason.text || refusal.reason.word}` : ""]];
}

function waitingItem(name, kind, states, rows) {
    return h("li", {}, h("div", {class: "who"}, h("span", {}, name), h("span", {class: "quiet"}, kind), ...states),
             h("dl", {}, ...rows.flatMap(([term, ...words]) => [h("dt", {}, term),
                 h("dd", {}, ...words.filter((word) => word !== null && word !== ""))])));
}

function waitingContainer(one) {
    const states = [];
    const rows = [];

    if (one.pending !== null) {
        states.push(h("span", {class: "quiet"}, one.pending.forwarded ? "the runtime makes it, for " : "waits for ",
                      age(one.pending.since),
                      one.pending.refusedInSeconds === null ? ""
                          : `, is refused in ${seconds(one.pending.refusedInSeconds)}`));
    }
    for (const finding of one.now) {
        rows.push([finding.resource === null ? "asks" : "for",
                   finding.resource === null ? "" : `${finding.asked} × ${finding.resource}: `,
                   finding.step === "go" ? mark("good", finding.has ? "has" : "would get") : mark("warn", finding.step),
                   finding.ids.length > 0 ? ` ${finding.ids.join(", ")}${more(finding.ids, finding.idsTotal)}` : ""],
                  ...reasonRows(finding.reason));
    }
    return waitingItem(podName(one.namespace, one.pod, one.uid), `container ${one.container}`, states,
                       [...rows, ...refusalRows(one.lastRefusal)]);
}

function waitingClaim(one) {
    const rows = one.waits.map((request) => [
        "asked", `${request.asks}, for `, age(request.since),
        request.refusedInSeconds === null ? "" : `, is refused in ${seconds(request.refusedInSeconds)}`]);

    if (one.retryInSeconds !== null)
        rows.push(["again", `in ${seconds(one.retryInSeconds)}`]);
    return waitingItem(podName(one.namespace, one.name, one.uid), `claim, driver ${one.driver}`,
                       [mark("warn", one.state)], [...rows, ...reasonRows(one.reason), ...refusalRows(one.lastRefusal)]);
}

function showWaiting(why) {
    const items = [...why.items, ...why.claims];

    waiting.shown(true, why.more ? `the first ${items.length}` : items.length > 0 ? String(items.length) : "");
    fill(waitingList, items, (one) => `${one.uid}/${one.container || one.driver}`,
         (one) => "container" in one ? waitingContainer(one) : waitingClaim(one));
    nothingWaits.hidden = items.length > 0;
    return items.length;
}

/* ---- resources, and the devices of one ---- */

let chosen = new URLSearchParams(location.hash.slice(1)).get("resource");

function choose(resource) {
    chosen = resource;
    history.replaceState(null, "", `#${new URLSearchParams({resource})}`);
    devices.begin();
    again();
}

const STATES = {
    active: "good", builtin: "good", connected: "good", healthy: "good", prepared: "good", connecting: "warn",
    moved: "warn", unhealthy: "bad", unlisted: "warn", grace: "bad", gone: "bad", away: "bad"};

function state(word) {
    return mark(STATES[word] || "warn", word);
}

function bar(one) {
    const lame = Math.max(0, one.devices - one.healthy);
    const parts = [["held", one.held], ["free", one.free], ["lame", lame]];
    const spans = parts.map(([kind, n]) => {
        const span = h("span", {class: kind});

        span.style.flexGrow = n;
        return span;
    });
    const rest = h("span", {});

    rest.style.flexGrow = Math.max(0, one.devices - one.held - one.free - lame);
    return h("span", {class: "bar", "aria-hidden": "true"}, ...spans, rest);
}

function cordon(what, is) {
    return [mark("warn", what), is && is.reason ? ` ${is.reason}` : null, is ? " " : null, is ? age(is.since) : null];
}

function pluginWords(one) {
    const plugin = one.plugin;

    if (!plugin || plugin.away === null)
        return plugin ? age(plugin.since) : null;
    return [age(plugin.away.since), `, ${seconds(plugin.away.graceLeftSeconds)} left`,
            plugin.away.error ? `: ${plugin.away.error}` : null];
}

const resources = new Table("resources", "Resources", [
    ["Resource", "", (one) => h("button", {type: "button", class: "link", "data-focus": one.name,
                                           "aria-controls": "devices", click: () => choose(one.name)}, one.name)],
    ["Plugin", "short", (one) => state(one.state)],
    ["Since", "", pluginWords],
    ["In use", "", bar],
    ["Devices", "number", (one) => String(one.devices)],
    ["Healthy", "number", (one) => one.healthy < one.devices ? mark("bad", String(one.healthy)) : String(one.healthy)],
    ["Held", "number", (one) => String(one.held)],
    ["Free", "number", (one) => String(one.free)],
    ["Kubelet sees", "number", (one) => one.kubelet === null ? "" : `${one.kubelet.healthy}/${one.kubelet.devices}`],
    ["Orders", "", (one) => one.withdrawn ? cordon("withdrawn", one.withdrawal)
        : mark("warn", one.cordoned > 0 ? `${one.cordoned} cordoned` : "")],
], (one) => one.name, {isChosen: (name) => name === chosen});

async function lookAtResources(kept) {
    const plugins = (await ask(pathOf("plugins", {rows: 200}), kept)).items;
    const all = [];
    let after = [];

    for (let part = 0; part < PARTS_MAX && (part === 0 || after.length > 0); part++) {
        const page = await ask(pathOf("resources", {rows: ROWS, after}), kept);

        all.push(...page.items);
        after = page.next;
    }
    if (all.length > 0 && !all.some((one) => one.name === chosen))
        chosen = all[0].name;
    resources.show(all.map((one) => ({...one, plugin: plugins.find((plugin) => plugin.resource === one.name) || null})),
                   all.length > 1 ? String(all.length) : "");
    return all;
}

function holders(one) {
    return one.holders.map((is) => `${podName(is.namespace, is.pod, is.uid)}/${is.container}`).join(", ")
        + more(one.holders, one.holdersTotal);
}

const devices = new List("devices", "Devices", "devices", [
    ["Device", "", (one) => h("span", {class: "id"}, one.id)],
    ["Health", "short", (one) => state(one.health)],
    ["Since", "short", (one) => age(one.since)],
    ["NUMA", "short", (one) => one.numaNodes.join(",")],
    ["State", "short", (one) => one.holders.length > 0 ? one.holders[0].state : one.free ? "free" : ""],
    ["Holder", "name", holders],
    ["Kubelet sees", "short", (one) => one.kubelet === null ? "" : one.kubelet],
    ["Orders", "", (one) => one.cordon === null ? "" : cordon("cordoned", one.cordon)],
], (one) => one.id, {query: () => ({resource: chosen}), none: null});
devices.noteOf = () => `of ${chosen}`;

/* ---- pods, claims, drivers ---- */

function podState(one) {
    const waits = one.containers.find((is) => is.waitsSince !== null);
    const refused = one.containers.find((is) => is.lastRefusal !== null);
    const states = [...new Set(one.containers.map((is) => is.state).filter(Boolean))];

    if (waits)
        return [mark("warn", "waits"), " ", age(waits.waitsSince)];
    return states.length > 0 ? states.join(", ") : refused ? mark("bad", "refused") : "";
}

const pods = new List("pods", "Pods", "pods", [
    ["Pod", "", (one) => podName(one.namespace, one.name, one.uid)],
    ["State", "short", podState],
    ["Containers", "", (one) => one.containers.map((is) => `${is.name} (${is.devices})`).join(", ")
        + more(one.containers, one.containersTotal)],
    ["Last refusal", "", (one) => one.containers.filter((is) => is.lastRefusal !== null).flatMap((is) => [
        `${is.name}: ${is.lastRefusal.word}, ${count(is.lastRefusal.times, "time", "times")}, `,
        age(is.lastRefusal.last), " ago "])],
], (one) => one.uid);
pods.noteOf = () => "that have devices, wait for some or were refused";

const endings = new List("endings", "Pods that are ended", "endings", [
    ["Pod", "", (one) => podName(one.namespace, one.name, one.uid)],
    ["State", "short", (one) => mark("warn", one.state)],
    ["Since", "short", (one) => age(one.since)],
    ["Due", "short", (one) => one.dueInSeconds === null ? "" : `in ${seconds(one.dueInSeconds)}`],
    ["Asked by", "", (one) => one.asked.map((is) => is.by + (is.reason ? `: ${is.reason}` : "")).join("; ")],
], (one) => one.uid);

const drivers = new List("drivers", "DRA drivers", "drivers", [
    ["Driver", "", (one) => one.name],
    ["State", "short", (one) => state(one.state)],
    ["Since", "short", (one) => age(one.since)],
    ["Claims", "number", (one) => String(one.claims.known)],
    ["Prepared", "number", (one) => String(one.claims.prepared)],
    ["Owed", "number", (one) => one.claims.owed > 0 ? mark("warn", String(one.claims.owed)) : "0"],
    ["Waiting", "number", (one) => one.claims.waits > 0 ? mark("warn", String(one.claims.waits)) : "0"],
    ["Unhealthy", "number", (one) => one.health === null ? "" : String(one.health.unhealthy)],
    ["Why", "", (one) => one.why],
], (one) => one.name, {none: "DRA drivers"});

const claims = new List("claims", "Claims", "claims", [
    ["Claim", "", (one) => podName(one.namespace, one.name, one.uid)],
    ["Driver", "name", (one) => one.driver],
    ["State", "short", (one) => state(one.state)],
    ["Since", "short", (one) => age(one.since)],
    ["Devices", "", (one) => one.devices.flatMap((is, i) => [
        i > 0 ? ", " : null, h("span", {class: "id"}, `${is.pool}/${is.name}`),
        is.health && is.health.state !== "healthy" ? " " : null,
        is.health && is.health.state !== "healthy" ? state(is.health.state) : null])],
    ["Used by", "", (one) => one.usedBy.map((is) => `${is.pod}/${is.container}`).join(", ")
        + more(one.usedBy, one.usedByTotal)],
    ["Waiting", "number", (one) => one.waits > 0 ? mark("warn", String(one.waits)) : ""],
], (one) => `${one.uid}/${one.driver}`);

/* ---- taints, orders, events ---- */

const taints = new List("taints", "Taints", "taints", [
    ["Of", "", (one) => [one.resource || "any", " ", h("span", {class: "id"}, one.id || "each")]],
    ["Taint", "", (one) => one.key + (one.value ? `=${one.value}` : "")],
    ["Effect", "short", (one) => mark(one.effect === "NoExecute" && one.followed ? "bad" : "warn", one.effect)],
    ["Set by", "short", (one) => one.source],
    ["Since", "short", (one) => age(one.since)],
    ["Ends", "short", (one) => one.endsInSeconds === null ? "" : `in ${seconds(one.endsInSeconds)}`],
    ["Pods", "number", (one) => String(one.pods)],
    ["Why", "", (one) => [one.heldBack ? mark("warn", "held back") : null,
                          one.followed ? null : mark("warn", "not followed"), one.reason ? ` ${one.reason}` : null]],
], (one) => JSON.stringify([one.resource, one.id, one.key, one.effect, one.source]));

const orders = new List("orders", "Orders", "orders", [
    ["Of", "", (one) => [one.resource, " ", one.id ? h("span", {class: "id"}, one.id) : null]],
    ["Order", "short", (one) => mark("warn", one.kind)],
    ["Since", "short", (one) => age(one.since)],
    ["Change", "short", (one) => one.over ? "ended" : one.moreSeconds > 0 ? `${seconds(one.moreSeconds)} longer` : ""],
    ["Reason", "", (one) => one.reason],
], (one) => JSON.stringify([one.kind, one.resource, one.id]));

const BAD_EVENTS = new Set(["lost", "removed", "refused", "withdrawn", "cordoned", "tainted", "driver-went", "claim-owed",
                            "taints-held-back"]);
let eventRows = ROWS;

const events = new Table("events", "Events", [
    ["When", "short", (one) => age(one.last)],
    ["Event", "short", (one) => [BAD_EVENTS.has(one.kind) ? mark("warn", one.kind) : one.kind,
                                 one.times > 1 ? ` × ${one.times}` : null]],
    ["Resource", "name", (one) => one.resource],
    ["Devices", "name", (one) => one.idsTotal === 0 ? ""
        : h("span", {class: "id"}, one.ids.join(", ") + more(one.ids, one.idsTotal))],
    ["Pod or claim", "name", (one) => one.claim ? `claim ${podName(one.claim.namespace, one.claim.name, one.claim.uid)}`
        : one.uid ? podName(one.namespace, one.pod, one.uid) + (one.container ? `/${one.container}` : "") : ""],
    ["What", "", (one) => [one.reason ? mark("warn", one.reason) : null, one.text ? ` ${one.text}` : null]],
], (one) => String(one.id));
const moreEvents = h("button", {type: "button", click: () => {
    eventRows = eventRows === ROWS ? 200 : ROWS;
    again();
}}, "");
events.element.append(h("div", {class: "pager"}, moreEvents));

async function lookAtEvents(kept) {
    const all = [...(await ask(pathOf("events", {rows: eventRows}), kept)).items].reverse();

    events.show(all, "of the last day, the newest first");
    setText(moreEvents, eventRows === ROWS ? "Show 200" : `Show ${ROWS}`);
    moreEvents.parentNode.hidden = all.length < ROWS;
}

/* ---- processes, settings ---- */

const processes = new Table("processes", "Processes", [
    ["Name", "", (one) => one.name],
    ["State", "short", (one) => mark(one.good ? "good" : "bad", one.state)],
    ["Pid", "number", (one) => one.pid === null ? "" : String(one.pid)],
    ["Up for", "short", (one) => one.up === null ? "" : seconds(one.up)],
    ["Version", "", (one) => one.version],
    ["Detail", "", (one) => one.detail],
], (one) => one.name, {none: null});

function showProcesses(status) {
    const rows = status.processes.map((one, i) => {
        const there = i === 0 || one.version !== null;

        return {name: one.name, good: there, state: i === 0 ? "running" : there ? "connected" : "away", pid: one.pid,
                up: one.uptimeSeconds, version: one.version, detail: null};
    });
    const {runtime, kubelet} = status;

    if (runtime)
        rows.push({name: "runtime", good: runtime.connected, state: runtime.connected ? "connected" : "away", pid: null,
                   up: null, version: runtime.name ? `${runtime.name} ${runtime.version}` : null,
                   detail: runtime.endpoint});
    if (kubelet)
        rows.push({name: "kubelet", good: kubelet.pid !== null && kubelet.gate !== "holding",
                   state: kubelet.pid === null ? "not seen" : `gate ${kubelet.gate}`, pid: kubelet.pid,
                   up: kubelet.uptimeSeconds, version: null, detail: kubelet.taken});
    processes.show(rows);
}

const settings = new Table("settings", "Settings that differ", [
    ["Setting", "", (one) => h("code", {}, one.key)],
    ["Value", "", (one) => h("code", {}, one.value)],
    ["Default", "", (one) => one.default === null ? "" : h("code", {}, one.default)],
], (one) => one.key, {none: null});

/* ---- the whole ---- */

const node = document.getElementById("node"), version = document.getElementById("version");
const verdict = document.getElementById("verdict"), live = document.getElementById("live");
const lost = document.getElementById("lost"), none = document.getElementById("none");
let heard = null;      // when all was answered last, by this clock
let wrong = "";        // what was said in place of an answer
let running = null;    // the version that this page is of
let timer = null, busy = false, asked = false;

function clock(ms) {
    return new Date(ms).toLocaleTimeString([], {hour12: false});
}

function showHead(status, waits) {
    const things = status.degraded.length;
    const words = [things > 0 ? `${count(things, "thing", "things")} not as it should be` : "",
                   waits > 0 ? `${count(waits, "container or claim", "containers or claims")} waiting` : ""].filter(Boolean);

    setText(node, status.node || "cri-device-shim");
    setText(version, `cri-device-shim ${status.processes[0].version}`);
    document.title = `${words.length > 0 ? "! " : ""}${status.node || "node"} · cri-device-shim`;
    verdict.className = things > 0 ? "bad" : waits > 0 ? "warn" : "good";
    setText(verdict, words.length > 0 ? words.join(", ") : "All is as it should be");
    if (running !== null && running !== status.processes[0].version)
        location.reload();  // another release has another page
    running = status.processes[0].version;
}

async function look() {
    const kept = new Map();
    const status = await ask(pathOf("status"), kept);
    const waits = showWaiting(await ask(pathOf("why"), kept));

    showHead(status, waits);
    troubles.show(status.degraded);
    showShutdown(status.shutdown);
    if ((await lookAtResources(kept)).length > 0)
        await devices.look(kept);
    else
        devices.show([], "");
    for (const one of [pods, endings, taints, orders])
        await one.look(kept);
    for (const one of [drivers, claims]) {
        if (status.dra !== null)
            await one.look(kept);
        else
            one.show([], "");
    }
    await lookAtEvents(kept);
    showProcesses(status);
    settings.show(status.settings);
    answers = kept;
}

function showNone() {
    const missing = sections.filter((one) => one.none !== null && one.element.hidden).map((one) => one.none);

    setText(none, heard !== null && missing.length > 0 ? `None: ${missing.join(", ")}.` : "");
}

function showLive() {
    lost.hidden = wrong === "";
    document.body.classList.toggle("stale", wrong !== "" && heard !== null);
    setText(live, heard === null ? "" : wrong === "" ? `Live, ${clock(heard)}`
        : `As of ${clock(heard)}, ${ageOf(Date.now() - heard)} ago`);
    setText(lost, wrong === "" ? "" : heard === null ? `The daemon does not answer: ${wrong}.`
        : `The daemon does not answer since ${clock(heard)}: ${wrong}. What is below is as of then.`);
}

/* One after the other, so that one connection is enough. */
async function turn() {
    const began = Date.now();

    timer = null;
    busy = true;
    asked = false;
    try {
        await look();
        heard = Date.now();
        wrong = "";
    } catch (error) {
        wrong = error instanceof Unanswered ? error.message : error.name === "TimeoutError" ? "no answer in time"
            : error instanceof TypeError ? "no connection" : String(error);
    }
    busy = false;
    showNone();
    showLive();
    if (asked)
        turn();
    else if (!document.hidden)
        timer = setTimeout(turn, Math.max(EVERY_MS, REST * (Date.now() - began)));
}

/* Now, or as soon as what is under way is through. */
function again() {
    asked = true;
    if (busy)
        return;
    clearTimeout(timer);
    turn();
}

document.getElementById("main").append(...[
    troubles, shutdown, waiting, endings, resources, devices, pods, drivers, claims, taints, orders, events, processes,
    settings].map((one) => one.element));
setInterval(() => {
    agesGoOn();
    if (wrong !== "")
        showLive();
}, 1000);
document.addEventListener("visibilitychange", () => {
    if (!document.hidden)
        again();
});
again();
