import { once } from 'node:events';
import { request as plainRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { IncomingMessage } from 'node:http';
import { realtime } from '@parley/protocol';
import { socketUrl, TestSocket } from '../support/socket.ts';
import type { SocketOptions } from '../support/socket.ts';

/** The name in the certificates and in the files that we ship. Nobody looks it up: it stands for this machine. */
export const publicName = 'chat.example.com';

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  body: any;
}

export interface Sent {
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** Somebody who reaches the service over TLS by its public name, from an address of this machine's own. */
export class Browser {
  readonly origin: string;
  readonly #port: number;
  readonly #agent: Agent;
  readonly #httpPort: number;

  constructor(
    { httpsPort, httpPort, ca }: { httpsPort: number; httpPort: number; ca: string },
    address: string,
  ) {
    this.#port = httpsPort;
    this.#httpPort = httpPort;
    this.origin = `https://${publicName}:${httpsPort}`;
    this.#agent = new Agent({
      ca,
      localAddress: address,
      keepAlive: true,
      lookup: (_name, { all }, found) => {
        if (all) found(null, [{ address: '127.0.0.1', family: 4 }]);
        else found(null, '127.0.0.1', 4);
      },
    });
  }

  async send(method: string, path: string, { headers = {}, body }: Sent = {}): Promise<Reply> {
    const asked = request({
      agent: this.#agent,
      host: publicName,
      servername: publicName,
      port: this.#port,
      method,
      path,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }) },
    });
    asked.end(body);
    return reply(asked);
  }

  json(method: string, path: string, value: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const all = { 'content-type': 'application/json', ...headers };
    return this.send(method, path, { headers: all, body: JSON.stringify(value) });
  }

  /** Over http, as somebody who types the name alone. */
  plain(path: string): Promise<Reply> {
    const asked = plainRequest({
      port: this.#httpPort,
      host: '127.0.0.1',
      path,
      headers: { host: publicName },
    });
    asked.end();
    return reply(asked);
  }

  open(options: SocketOptions = {}): TestSocket {
    return new TestSocket(
      socketUrl(this.origin, options),
      options.protocols ?? realtime.subprotocol,
      options.headers,
      this.#agent,
    );
  }

  close(): void {
    this.#agent.destroy();
  }
}

async function reply(asked: ReturnType<typeof request>): Promise<Reply> {
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  const content = await text(answer);
  const isJson = /^application\/json(;|$)/.test(answer.headers['content-type'] ?? '');
  return {
    status: answer.statusCode!,
    headers: answer.headers,
    text: content,
    body: isJson && content !== '' ? JSON.parse(content) : undefined,
  };
}
