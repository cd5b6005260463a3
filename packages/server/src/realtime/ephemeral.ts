import { channels } from '../features/node-bus.ts';
import type { NodeBus, SocketChoice } from '../features/node-bus.ts';
import type { LocalUser, Route } from './local-user.ts';
import { textFrame } from './wire.ts';

/**
 * Frames outside the seq stream (typing, receipts, calls): they go to the sockets that are open, and are not repeated.
 * @param users and `routes` are the hub's.
 */
export function createEphemeral(
  users: ReadonlyMap<number, LocalUser>,
  routes: ReadonlyMap<string, Route>,
  bus: NodeBus,
) {
  /** Sends to the open sockets of these users, on all nodes. */
  function toUsers(env: number, numbers: readonly number[], text: string, where: SocketChoice = {}): void {
    const frame = textFrame(text);
    const each = [...new Set(numbers)];
    for (const no of each) toUserHere(env, no, frame, where);
    bus.publish('toUser', { env, frame: text, where }, ...each.map(channels.user));
  }

  function toUserHere(env: number, no: number, frame: Buffer, { only, except, confirm }: SocketChoice): void {
    const user = users.get(no);
    if (user?.env !== env) return;
    for (const session of user.sessions)
      if (only === undefined ? except === undefined || session.id !== except : session.id === only) {
        session.send(frame);
        if (confirm !== undefined) session.askToConfirm(confirm);
      }
  }

  /** Sends to the open sockets of all members, on all nodes. */
  function relay(cid: string, frame: string, except: number | null): void {
    relayHere(cid, frame, except);
    bus.publish('relay', { frame, except }, channels.conversation(cid));
  }

  /** Sends the frame on this node alone. */
  function relayHere(cid: string, text: string, except: number | null): void {
    const route = routes.get(cid);
    if (!route) return;
    const frame = textFrame(text);
    for (const user of route.users)
      if (user.no !== except) for (const session of user.sessions) session.send(frame);
  }

  bus.on('relay', ({ frame, except }, cid) => relayHere(cid, frame, except));
  bus.on('toUser', ({ env, frame, where }, user) => toUserHere(env, Number(user), textFrame(frame), where));
  return { toUsers, relay, relayHere };
}
