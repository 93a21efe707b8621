// A foreign client: `client.js eventsource|ws <url> [subprotocol]`. Prints what happens to it, one
// JSON array a line; lines on its input are sent (ws only).
"use strict";

const [kind, url, protocol] = process.argv.slice(2);
const say = (...what) => console.log(JSON.stringify(what));

function eventsource() {
  const EventSource = require("eventsource");
  const source = new EventSource(url);
  const on = (name) => source.addEventListener(name, (e) => say(name, e.data, e.lastEventId));
  source.onopen = () => say("open");
  source.onerror = (e) => say("error", e.status ?? 0, source.readyState);
  ["message", "greeting", "tidecast.gap"].forEach(on);
}

function ws() {
  const { WebSocket } = require("ws");
  const socket = new WebSocket(url, protocol ? [protocol] : []);
  socket.on("open", () => say("open", socket.protocol, socket.extensions));
  socket.on("message", (data, isBinary) => say("message", data.toString(), isBinary));
  socket.on("ping", () => say("ping"));
  socket.on("close", (code, reason) => { say("close", code, reason.toString()); process.exit(0); });
  socket.on("error", (e) => say("error", e.message));
  require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
    if (line === "close") socket.close(4000, "done");
    else socket.send(line);
  });
}

({ eventsource, ws })[kind]();
