/* Tidecast's browser client: subscribes to channels over SSE or WebSocket, and stays subscribed.
 *
 *   <script src="/tidecast.js"></script>            defines Tidecast
 *   import '/tidecast.js'                           does too
 *
 *   const tide = new Tidecast({channels: ['news']});
 *   tide.on('message', m => console.log(m.channel, m.id, m.event, m.data));
 *
 * Options
 *   channels      names; may be empty at first
 *   url           where the gateway is; '/' of this page's server by default
 *   transport     'sse' (default) or 'websocket'
 *   lastEventId   resume after this id instead of starting now
 *   token         sent as ?token= on streams and as a bearer token when publishing
 *   timing        {backoffMin, backoffMax, healthyAfter, silence, answer} in ms, see TIMING
 *
 * Events, each with one object
 *   open          {transport}: subscribed, messages will come
 *   message       {channel, id, event, data, raw}: raw is the payload's text; data is the object or
 *                 array if the payload is JSON of one, else the text
 *   event:<name>  the same, for messages of that name only
 *   gap           {channel, from, to, reason}: messages were missed and can't be had any more
 *   status        {state, reason, retryIn}: state is idle, connecting, open, waiting or closed
 *   close         {reason, code}: it is over: close() was called, or the server refused the token
 *
 * What SSE can't do, because the browser's EventSource doesn't:
 *   - a named event is only seen if its name was given to on('event:<name>') first;
 *   - `channel` is undefined when the stream has several channels;
 *   - `id` is the stream's position, so a message without an id shows that of the one before;
 *   - a refusal has no status: 401 and 403 look like 503 and are retried, ever more slowly. Over
 *     WebSocket they come as close codes 4401 and 4403 and end the client. */
(function () {
'use strict';

const TIMING = {
    backoffMin: 1000,    /* the first delay is drawn between 0 and this; the bound doubles ... */
    backoffMax: 30000,   /* ... up to this */
    healthyAfter: 10000, /* a connection that lived so long starts the backoff afresh */
    silence: 60000,      /* WebSocket: after so long without a byte, ask */
    answer: 10000,       /* ... and without an answer in this time, reconnect */
};
const GAP = 'tidecast.gap';
const UNAUTHORISED = 4401;
const FORBIDDEN = 4403;

/* Why a publish failed: code as the server names it (or 'not_connected', 'connection_lost'),
 * status over HTTP, retryAfter in seconds if the server said so. */
class TidecastError extends Error {
    constructor(code, message, more) {
        super(message || code);
        this.name = 'TidecastError';
        this.code = code;
        Object.assign(this, more);
    }
}

function notConnected() {
    return new TidecastError('not_connected', 'not connected just now');
}

function decode(raw) {
    if (!/^\s*[[{]/.test(raw))
        return raw;
    try {
        return JSON.parse(raw);
    } catch {
        return raw;
    }
}

function parseObject(text) {
    try {
        const value = JSON.parse(text);
        return value !== null && typeof value === 'object' ? value : {};
    } catch {
        return {};
    }
}

function encode(data) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    if (text === undefined)
        throw new TypeError('data must be a string or something that JSON can say');
    return text;
}

/* The payload's own bytes: the envelope ends with them, and nothing before them can hold a quote. */
function payloadText(envelopeText, data) {
    if (typeof data === 'string')
        return data;
    const mark = '"data":';
    return envelopeText.slice(envelopeText.indexOf(mark) + mark.length, -1);
}

/* A transport is made for one connection and dropped after it. It has stop(), and calls back
 * owner.opened(), owner.received(message), owner.missed(gap), owner.lost(reason, code). */

class SseStream {
    constructor(owner) {
        this.owner = owner;
        const params = owner.channels.map(name => ['channel', name]);
        if (owner.lastEventId)
            params.push(['lastEventId', owner.lastEventId]);
        this.source = new EventSource(owner.address('sse', params));
        this.source.onopen = () => owner.opened();
        this.source.onmessage = e => this.onEvent(e);
        this.source.onerror = () => this.onError();
        this.source.addEventListener(GAP, e => this.onGap(e));
        this.names = new Set();
        owner.eventNames().forEach(name => this.listen(name));
    }

    listen(name) {
        if (this.names.has(name) || name === 'message' || name === GAP)
            return;
        /* EventSource calls its own trouble 'error' as well; that one has no data. */
        this.source.addEventListener(name, e => e instanceof MessageEvent && this.onEvent(e));
        this.names.add(name);
    }

    onEvent(e) {
        const {owner} = this;
        owner.lastEventId = e.lastEventId || owner.lastEventId;
        owner.received({
            channel: this.channel(),
            id: e.lastEventId || undefined,
            event: e.type === 'message' ? undefined : e.type,
            data: decode(e.data),
            raw: e.data,
        });
    }

    onGap(e) {
        this.owner.lastEventId = e.lastEventId || this.owner.lastEventId;
        this.owner.missed({channel: this.channel(), ...parseObject(e.data)});
    }

    onError() {
        if (this.source.readyState === EventSource.CLOSED)
            this.owner.lost('refused');
        else
            this.owner.interrupted(); /* the browser reconnects by itself, with Last-Event-ID */
    }

    channel() {
        return this.owner.channels.length === 1 ? this.owner.channels[0] : undefined;
    }

    stop() {
        this.source.onopen = this.source.onmessage = this.source.onerror = null;
        this.source.close();
    }
}

class WsStream {
    constructor(owner) {
        this.owner = owner;
        this.pending = new Map();
        this.nextReq = 1;
        this.socket = new WebSocket(owner.address('ws', []).replace(/^http/, 'ws'));
        this.socket.onopen = () => this.onOpen();
        this.socket.onmessage = e => this.onText(String(e.data));
        this.socket.onclose = e => this.end(e.reason || `closed with ${e.code}`, e.code);
        this.rest();
    }

    async onOpen() {
        this.rest();
        try {
            await this.subscribe(this.owner.channels);
            this.owner.opened();
        } catch (error) {
            this.end(error.message);
        }
    }

    /* Each channel from where it was left; one command for those that were left at the same id. */
    subscribe(channels) {
        const groups = new Map();
        for (const name of channels) {
            const since = this.owner.positions.get(name);
            groups.set(since, [...(groups.get(since) || []), name]);
        }
        return Promise.all([...groups].map(async ([since, names]) => {
            const answer = await this.ask({subscribe: names, since});
            for (const name of names)
                if (answer.id && !this.owner.positions.has(name))
                    this.owner.positions.set(name, answer.id);
        }));
    }

    isReady() {
        return this.socket.readyState === WebSocket.OPEN;
    }

    ask(command) {
        if (!this.isReady())
            return Promise.reject(notConnected());
        const req = this.nextReq++;
        this.socket.send(JSON.stringify({...command, req}));
        return new Promise((resolve, reject) => this.pending.set(req, {resolve, reject}));
    }

    onText(text) {
        this.rest();
        const said = parseObject(text);
        if (said.channel !== undefined)
            this.onEnvelope(said, text);
        else if (this.pending.has(said.req))
            this.onAnswer(said);
    }

    onAnswer(said) {
        const {resolve, reject} = this.pending.get(said.req);
        this.pending.delete(said.req);
        if (said.error)
            reject(new TidecastError(said.error, said.message));
        else
            resolve(said);
    }

    onEnvelope({channel, id, event, data}, text) {
        const {owner} = this;
        if (id && owner.channels.includes(channel)) {
            owner.positions.set(channel, id);
            owner.lastEventId = id;
        }
        if (event === GAP) {
            owner.missed({channel, ...(typeof data === 'string' ? parseObject(data) : data)});
            return;
        }
        const raw = payloadText(text, data);
        owner.received({channel, id, event, data: typeof data === 'string' ? decode(raw) : data, raw});
    }

    /* Starts the watchdog over: something was heard. */
    rest() {
        clearTimeout(this.watchdog);
        const {silence, answer} = this.owner.timing;
        this.watchdog = setTimeout(() => {
            this.ask({ping: 1}).catch(() => {});
            this.watchdog = setTimeout(() => this.end('silent'), answer);
        }, silence);
    }

    end(reason, code) {
        if (this.stopped)
            return;
        this.stop();
        this.owner.lost(reason, code);
    }

    stop() {
        this.stopped = true;
        clearTimeout(this.watchdog);
        this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
        this.socket.close();
        for (const {reject} of this.pending.values())
            reject(new TidecastError('connection_lost', 'the connection was lost before the answer'));
        this.pending.clear();
    }
}

class Tidecast {
    constructor({url = '/', channels = [], transport = 'sse', lastEventId, token, timing} = {}) {
        if (transport !== 'sse' && transport !== 'websocket')
            throw new TypeError(`transport must be 'sse' or 'websocket', not '${transport}'`);
        this.base = new URL(url, globalThis.location && globalThis.location.href);
        if (!this.base.pathname.endsWith('/'))
            this.base.pathname += '/';
        this.transport = transport;
        this.channels = [...new Set(channels)];
        this.token = token;
        this.timing = {...TIMING, ...timing};
        this.lastEventId = lastEventId;
        this.positions = new Map(lastEventId ? this.channels.map(c => [c, lastEventId]) : []);
        this.listeners = new Map();
        this.attempts = 0;
        this.state = 'idle';
        this.pageListeners = {
            online: () => this.state === 'waiting' && this.connect(),
            pagehide: () => this.leave(),
            pageshow: e => e.persisted && this.connect(),
        };
        for (const [name, listener] of Object.entries(this.pageListeners))
            globalThis.addEventListener(name, listener);
        /* Later in this turn, so that the caller can add its listeners first. */
        this.scheduleConnect();
    }

    on(name, listener) {
        if (!this.listeners.has(name))
            this.listeners.set(name, new Set());
        this.listeners.get(name).add(listener);
        if (name.startsWith('event:') && this.stream instanceof SseStream)
            this.stream.listen(name.slice('event:'.length));
        return this;
    }

    off(name, listener) {
        const set = this.listeners.get(name);
        if (set)
            set.delete(listener);
        return this;
    }

    /* Both resolve when the server has agreed. SSE has no commands: it starts a new stream, which
     * resumes where the old one was, and resolves at once. */
    async subscribe(channels) {
        const fresh = [...new Set([].concat(channels))].filter(name => !this.channels.includes(name));
        this.channels.push(...fresh);
        await this.changed(fresh, stream => stream.subscribe(fresh));
    }

    async unsubscribe(channels) {
        const gone = [...new Set([].concat(channels))].filter(name => this.channels.includes(name));
        this.channels = this.channels.filter(name => !gone.includes(name));
        gone.forEach(name => this.positions.delete(name));
        await this.changed(gone, stream => stream.ask({unsubscribe: gone}));
    }

    /* Resolves to {id} once Redis has it. Over WebSocket a lost connection rejects with
     * 'connection_lost': whether it was published is not known, so use an idempotencyKey and repeat. */
    async publish(channel, data, {event, key, idempotencyKey} = {}) {
        if (this.state === 'closed')
            throw new TidecastError('closed', 'this client was closed');
        if (this.transport === 'sse')
            return this.post(channel, encode(data), {event, key, idempotencyKey});
        if (!this.stream)
            throw notConnected();
        encode(data);
        const command = {channel, data, event, key, idempotency_key: idempotencyKey};
        return (await this.stream.ask({publish: command})).published;
    }

    close() {
        this.finish({reason: 'closed'});
    }

    /* The rest is for the transports. */

    address(path, params) {
        const address = new URL(path, this.base);
        if (this.token)
            params = [...params, ['token', this.token]];
        address.search = new URLSearchParams(params);
        return address.href;
    }

    eventNames() {
        return [...this.listeners.keys()].filter(name => name.startsWith('event:'))
            .map(name => name.slice('event:'.length));
    }

    opened() {
        this.openedAt = performance.now();
        this.enter('open');
        this.emit('open', {transport: this.transport});
    }

    received(message) {
        if (message.event)
            this.emit(`event:${message.event}`, message);
        this.emit('message', message);
    }

    missed(gap) {
        this.emit('gap', gap);
    }

    interrupted() {
        this.settleBackoff();
        this.enter('connecting', {reason: 'interrupted'});
    }

    lost(reason, code) {
        if (code === UNAUTHORISED || code === FORBIDDEN) {
            this.finish({reason: code === FORBIDDEN ? 'forbidden' : 'unauthorised', code});
            return;
        }
        this.settleBackoff();
        const {backoffMin, backoffMax} = this.timing;
        const retryIn = Math.random() * Math.min(backoffMax, backoffMin * 2 ** this.attempts++);
        this.drop();
        this.timer = setTimeout(() => this.connect(), retryIn);
        this.enter('waiting', {reason, retryIn: Math.round(retryIn)});
    }

    settleBackoff() {
        if (this.openedAt !== undefined
            && performance.now() - this.openedAt >= this.timing.healthyAfter)
            this.attempts = 0;
        this.openedAt = undefined;
    }

    scheduleConnect() {
        if (this.scheduled)
            return;
        this.scheduled = true;
        queueMicrotask(() => {
            this.scheduled = false;
            this.connect();
        });
    }

    connect() {
        if (this.state === 'closed')
            return;
        this.drop();
        if (this.transport === 'sse' && this.channels.length === 0) {
            this.enter('idle', {reason: 'no channels'});
            return;
        }
        this.enter('connecting');
        this.stream = this.transport === 'sse' ? new SseStream(this) : new WsStream(this);
    }

    /* The browser may keep a page that was left, for its Back button, and its connections with it:
     * six such streams, and the server gets no further request from this browser. */
    leave() {
        if (this.state === 'closed')
            return;
        this.drop();
        this.enter('waiting', {reason: 'page left'});
    }

    drop() {
        clearTimeout(this.timer);
        if (this.stream)
            this.stream.stop();
        this.stream = undefined;
    }

    async changed(names, tell) {
        if (names.length === 0 || this.state === 'closed')
            return;
        if (this.transport === 'sse')
            this.scheduleConnect();
        else if (this.stream && this.stream.isReady())
            await tell(this.stream); /* else it says so when it connects */
    }

    async post(channel, body, {event, key, idempotencyKey}) {
        const params = Object.entries({event, key}).filter(([, value]) => value !== undefined);
        const address = new URL(`publish/${encodeURIComponent(channel)}`, this.base);
        address.search = new URLSearchParams(params);
        const headers = {};
        if (idempotencyKey !== undefined)
            headers['Idempotency-Key'] = idempotencyKey;
        if (this.token)
            headers.Authorization = `Bearer ${this.token}`;
        const response = await fetch(address, {method: 'POST', body, headers}).catch(error => {
            throw new TidecastError('connection_lost', error.message);
        });
        const answer = parseObject(await response.text());
        if (response.ok)
            return answer;
        throw new TidecastError(answer.error || `http_${response.status}`, answer.message, {
            status: response.status,
            retryAfter: Number(response.headers.get('Retry-After')) || undefined,
        });
    }

    finish(why) {
        if (this.state === 'closed')
            return;
        this.drop();
        for (const [name, listener] of Object.entries(this.pageListeners))
            globalThis.removeEventListener(name, listener);
        this.enter('closed', why);
        this.emit('close', why);
    }

    enter(state, more) {
        this.state = state;
        this.emit('status', {state, ...more});
    }

    /* A listener that throws is reported as if it stood alone, and stops neither the others nor us. */
    emit(name, what) {
        for (const listener of [...(this.listeners.get(name) || [])]) {
            try {
                listener(what);
            } catch (error) {
                setTimeout(() => { throw error; });
            }
        }
    }
}

Tidecast.Error = TidecastError;
globalThis.Tidecast = Tidecast;
})();
