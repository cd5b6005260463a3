import type { IncomingMessage } from 'node:http';

/**
 * Whether somebody on this machine made the request, and it came here directly (identity#this-machine: the environment
 * that the first start makes by itself). A proxy on this machine also has a loopback address, so everything that
 * tells one counts: the name in `Host`, the headers that proxies add, the protocol that they speak by default
 * (HTTP/1.0), and the page that a browser was on (`Origin`).
 */

const loopbackAddress = /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$|^::1$/i;
const loopbackHost = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?$/i;
const ofProxies =
  /^(x-forwarded($|-)|forwarded$|via$|x-real-ip$|x-(original|client|remote|cluster-client|proxyuser|envoy|azure|amzn?|appengine)-|(true-client|client)-ip$|cf-|cdn-loop$|fly-|fastly-|proxy-)/;

type Request = Pick<IncomingMessage, 'headersDistinct' | 'httpVersion' | 'url'> & {
  socket: Pick<IncomingMessage['socket'], 'remoteAddress'>;
};

export function isFromThisMachine({ socket, headersDistinct, httpVersion, url }: Request): boolean {
  const { host = [], origin = [] } = headersDistinct;
  return (
    loopbackAddress.test(socket.remoteAddress ?? '') &&
    httpVersion === '1.1' &&
    host.length === 1 &&
    loopbackHost.test(host[0]!) &&
    // A complete address as the target names another host than `Host` does, if it wants to.
    url?.startsWith('/') === true &&
    origin.every((page) => loopbackHost.test(page.replace(/^https?:\/\//, ''))) &&
    !Object.keys(headersDistinct).some((name) => ofProxies.test(name))
  );
}

/** Where people reach us, if it is this machine alone. */
export const isLoopbackOrigin = (origin: string): boolean => loopbackHost.test(new URL(origin).host);
