import { Binary } from 'mongodb';
import type { Socket } from 'node:net';
import {
  int16,
  int32,
  mongoCommand,
  mongoHello,
  mongoReply,
  mysqlColumn,
  mysqlPacket,
  pgColumn,
  pgMessage,
  pgReady,
  startHttpDouble,
  startMongodbDouble,
  startMysqlDouble,
  startPostgresDouble,
} from './servers.ts';
import type { HostileServer } from './servers.ts';

/** What a server of a customer can send to harm whoever reads it. */

const date = 1082;
const text = 25;

/** Writes until the other side has enough of it. */
function pour(socket: Socket, piece: Buffer, times: number): void {
  let left = times;
  const more = (): void => {
    while (left > 0 && !socket.destroyed) {
      left -= 1;
      if (!socket.write(piece)) return void socket.once('drain', more);
    }
  };
  more();
}

const megabyte = Buffer.alloc(1_048_576, 'x');

export const hostileCases: Record<string, () => Promise<HostileServer>> = {
  'PostgreSQL: an unknown authentication code': () => startPostgresDouble(pgMessage('R', int32(99))),
  'PostgreSQL: an error without its end': () => startPostgresDouble(pgMessage('E', Buffer.from('SFATAL'))),
  'PostgreSQL: a row description with 100 columns and no content': () =>
    startPostgresDouble(pgReady, (socket) => socket.write(pgMessage('T', int16(100)))),
  'PostgreSQL: 200 kB of digits typed as a date': () =>
    startPostgresDouble(pgReady, (socket) => {
      const digits = Buffer.alloc(200_000, '1');
      socket.write(
        Buffer.concat([
          pgMessage('T', Buffer.concat([int16(1), pgColumn('version', date)])),
          pgMessage('D', Buffer.concat([int16(1), int32(digits.length), digits])),
          pgMessage('C', Buffer.from('SELECT 1\0')),
          pgMessage('Z', Buffer.from('I')),
        ]),
      );
    }),
  'PostgreSQL: one row of 1.5 GB': () =>
    startPostgresDouble(pgReady, (socket) => {
      const size = 1_500_000_000;
      socket.write(pgMessage('T', Buffer.concat([int16(1), pgColumn('version', text)])));
      socket.write(pgMessage('D', Buffer.concat([int16(1), int32(size)]), size + 10));
      pour(socket, megabyte, 1_431);
    }),
  'PostgreSQL: rows without an end, 1.5 GB of them': () =>
    startPostgresDouble(pgReady, (socket) => {
      socket.write(pgMessage('T', Buffer.concat([int16(1), pgColumn('version', text)])));
      pour(socket, pgMessage('D', Buffer.concat([int16(1), int32(megabyte.length), megabyte])), 1_431);
    }),
  'MySQL: no EOF after the columns': () =>
    startMysqlDouble((socket) =>
      socket.write(
        Buffer.concat([
          mysqlPacket(1, Buffer.from([1])),
          mysqlPacket(2, mysqlColumn('version', 253)),
          mysqlPacket(3, Buffer.from([2, 0x38, 0x30])),
          mysqlPacket(4, Buffer.from([2, 0x38, 0x30])),
        ]),
      ),
    ),
  'MongoDB: a hello with `hosts: 5`': () =>
    startMongodbDouble((socket, data) =>
      socket.write(mongoReply(data, { ...mongoHello, setName: 'rs', hosts: 5 })),
    ),
  'MongoDB: a reply that claims 2^31 - 1 documents': () =>
    startMongodbDouble((socket, data) =>
      socket.write(mongoReply(data, mongoHello, { documents: 2 ** 31 - 1 })),
    ),
  'MongoDB: SCRAM with two billion iterations': () =>
    startMongodbDouble((socket, data) => {
      const command = mongoCommand(data);
      const said = (command['speculativeAuthenticate'] ?? command) as { payload?: Binary };
      const nonce = /r=([^,]*)/.exec(said.payload?.toString('utf8') ?? '')?.[1];
      const payload = Buffer.from(`r=${nonce}more,s=c2FsdHNhbHRzYWx0c2FsdA==,i=2000000000`);
      const challenge = { conversationId: 1, done: false, payload: new Binary(payload), ok: 1 };
      const hello = 'speculativeAuthenticate' in command || !('saslStart' in command);
      socket.write(
        mongoReply(
          data,
          hello
            ? { ...mongoHello, saslSupportedMechs: ['SCRAM-SHA-256'], speculativeAuthenticate: challenge }
            : challenge,
        ),
      );
    }),
  'http: 16 MB of `[],` as the answer': () =>
    startHttpDouble(() => `{"ok":true,"data":[${'[],'.repeat(5_500_000)}[]]}`),
};
