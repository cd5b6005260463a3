import type { SocketChoice } from '../../features/context.ts';
import type { Bus } from '../../platform/bus/port.ts';
import { decodeRelay, decodeToUser, encodeRelay, encodeToUser } from './bus-messages.ts';
import type { LocalUser, Route } from './session.ts';
import { textFrame } from './wire.ts';

/** Frames outside the seq stream (typing, receipts, calls): they go to whoever is connected, and are not repeated. */
export class Ephemeral {
  readonly #users: ReadonlyMap<number, LocalUser>;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #bus: Bus;

  /** @param users and `routes` are the hub's. */
  constructor(users: ReadonlyMap<number, LocalUser>, routes: ReadonlyMap<string, Route>, bus: Bus) {
    this.#users = users;
    this.#routes = routes;
    this.#bus = bus;
  }

  /** Sends to the open sockets of these users, on all nodes. */
  toUsers(env: number, users: readonly number[], text: string, where: SocketChoice = {}): void {
    const frame = textFrame(text);
    const payload = this.#bus.alone ? null : encodeToUser(env, text, where);
    for (const no of new Set(users)) {
      this.#toUserHere(env, no, frame, where);
      if (payload !== null) this.#bus.publish(`u:${no}`, payload);
    }
  }

  receivedToUser(channel: string, payload: string): void {
    const message = decodeToUser(payload);
    if (!message) return;
    this.#toUserHere(message.env, Number(channel.slice(2)), textFrame(message.frame), message.where);
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
    if (!this.#bus.alone) this.#bus.publish(`c:${cid}`, encodeRelay(frame, except));
  }

  receivedRelay(channel: string, payload: string): void {
    const relay = decodeRelay(payload);
    if (relay) this.relayHere(channel.slice(2), relay.frame, relay.except);
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
