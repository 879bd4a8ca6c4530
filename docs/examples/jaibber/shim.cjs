// Points every client of the `ably` package at a hub, for programs that have no option for it, such as the Jaibber SDK:
//
//   PARLOR_URL=http://127.0.0.1:7878 NODE_OPTIONS="--require ./shim.cjs" node agent.js
//
// Options that the program sets itself stay, except the host, the port and TLS.
'use strict';

const Module = require('node:module');

const hub = new URL(process.env.PARLOR_URL || 'http://127.0.0.1:7878');
const tls = hub.protocol === 'https:';
const port = Number(hub.port || (tls ? 443 : 80));
const target = { endpoint: hub.hostname, tls, ...(tls ? { tlsPort: port } : { port }) };
const hosts = ['environment', 'realtimeHost', 'restHost', 'fallbackHosts'];

function pointed(options) {
  const given = typeof options === 'string' ? { [options.includes(':') ? 'key' : 'token']: options } : { ...options };
  for (const name of hosts) delete given[name];
  return { disableConnectivityCheck: true, ...given, ...target };
}

const patched = new WeakSet();

function patch(ably) {
  if (patched.has(ably)) return ably;
  for (const name of ['Realtime', 'Rest']) {
    const Client = ably[name];
    const Pointed = class extends Client {
      constructor(options) {
        super(pointed(options));
      }
    };
    Object.defineProperty(ably, name, { value: Pointed, enumerable: true });
  }
  patched.add(ably);
  return ably;
}

const load = Module._load;
Module._load = function (request, ...rest) {
  const loaded = load.call(this, request, ...rest);
  const isAbly = request === 'ably' || /[\\/]ably[\\/]build[\\/]ably-node\.js$/.test(request);
  return isAbly && typeof loaded.Realtime === 'function' ? patch(loaded) : loaded;
};
