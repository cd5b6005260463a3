import { channels } from '../features/node-bus.ts';
import type { NodeBus, SocketChoice } from '../features/node-bus.ts';
import type { LocalUser, Route } from './local-user.ts';
import { textFrame } from './wire.ts';

/** Frames outside the seq stream (typing, receipts, calls): they go to the sockets that are open, and are not repeated. */
export class Ephemeral {
  readonly #users: ReadonlyMap<number, LocalUser>;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #bus: NodeBus;

  /** @param users and `routes` are the hub's. */
  constructor(users: ReadonlyMap<number, LocalUser>, routes: ReadonlyMap<string, Route>, bus: NodeBus) {
    this.#users = users;
    this.#routes = routes;
    this.#bus = bus;
    bus.on('relay', ({ frame, except }, cid) => this.relayHere(cid, frame, except));
    bus.on('toUser', ({ env, frame, where }, user) =>
      this.#toUserHere(env, Number(user), textFrame(frame), where),
    );
  }

  /** Sends to the open sockets of these users, on all nodes. */
  toUsers(env: number, users: readonly number[], text: string, where: SocketChoice = {}): void {
    const frame = textFrame(text);
    const each = [...new Set(users)];
    for (const no of each) this.#toUserHere(env, no, frame, where);
    this.#bus.publish('toUser', { env, frame: text, where }, ...each.map(channels.user));
  }

  #toUserHere(env: number, no: number, frame: Buffer, { only, except, confirm }: SocketChoice): void {
    const user = this.#users.get(no);
    if (user?.env !== env) return;
    for (const session of user.sessions)
      if (only === undefined ? except === undefined || session.id !== except : session.id === only) {
        session.send(frame);
        if (confirm !== undefined) session.askToConfirm(confirm);
      }
  }

  /** Sends to the open sockets of all members, on all nodes. */
  relay(cid: string, frame: string, except: number | null): void {
    this.relayHere(cid, frame, except);
    this.#bus.publish('relay', { frame, except }, channels.conversation(cid));
  }

  /** Sends the frame on this node alone. */
  relayHere(cid: string, text: string, except: number | null): void {
    const route = this.#routes.get(cid);
    if (!route) return;
    const frame = textFrame(text);
    for (const user of route.users)
      if (user.no !== except) for (const session of user.sessions) session.send(frame);
  }
}
