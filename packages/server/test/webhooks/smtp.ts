import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

/** A mail server that accepts everything. */
export interface Smtp {
  url: string;
  mails: string[];
  next(): Promise<string>;
  close(): Promise<void>;
}

export async function startSmtp(): Promise<Smtp> {
  const waiting: ((mail: string) => void)[] = [];
  const smtp: Smtp = {
    url: '',
    mails: [],
    next: () => new Promise((resolve) => waiting.push(resolve)),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
  const server = createServer((socket) => {
    let text = '';
    let body: string | null = null;
    const say = (line: string): boolean => socket.write(`${line}\r\n`);
    say('220 test');
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      text += chunk.toString();
      for (let end = text.indexOf('\r\n'); end >= 0; end = text.indexOf('\r\n')) {
        const line = text.slice(0, end);
        text = text.slice(end + 2);
        if (body !== null) {
          if (line !== '.') body += `${line}\n`;
          else {
            smtp.mails.push(body);
            for (const resolve of waiting.splice(0)) resolve(body);
            body = null;
            say('250 ok');
          }
        } else if (/^data$/i.test(line)) {
          body = '';
          say('354 go on');
        } else if (/^quit$/i.test(line)) {
          say('221 bye');
          socket.end();
        } else say('250 ok');
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  smtp.url = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return smtp;
}
