import { ApiError, realtime } from '@parley/protocol';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import { toApiError } from '../rest/reply.ts';
import { closeFor, sendAway } from './close.ts';
import { parseFrame, requestIdOf } from './frames.ts';
import type { Frame } from './frames.ts';
import type { SocketLog } from './socket-log.ts';
import type { Session } from './session.ts';
import { ackFrame, errorFrame } from '../../realtime/wire.ts';

/** A client that is refused this often within this time ignores the refusals, so it is disconnected. */
const patience = 100;
const patienceMs = 10_000;

interface DispatchOptions {
  login: (session: Session, token: string) => Promise<void>;
  /** Runs a frame of a live session. Returns undefined if there is no answer, otherwise the `d` of the ack. */
  run: (session: Session, frame: Frame) => Promise<unknown> | void;
  log: SocketLog;
  clock: Clock;
  logger: Logger;
  /** Called with the milliseconds after which a send was answered. */
  acked: (session: Session, ms: number) => void;
  /** Called when the client confirmed what it was asked to. */
  confirmed: (session: Session, about: string) => void;
  /** Called when a frame failed by our own fault. */
  broken: (session: Session) => void;
}

/** Turns the bytes that a client sent into the answer it gets (socket#envelopes). */
export function createDispatch(options: DispatchOptions) {
  const { clock, logger, log, login, run, acked, confirmed, broken } = options;

  function message(session: Session, data: Buffer, isBinary: boolean): void {
    if (!session.isOpen || !counts(session, data.length)) return;
    let value: unknown;
    try {
      value = JSON.parse(isBinary ? '' : data.toString());
    } catch {
      return malformed(session);
    }
    session.invalidInARow = 0;
    let frame: Frame;
    try {
      frame = parseFrame(value);
    } catch (error) {
      if (session.state !== 'live') return early(session);
      return failed(session, requestIdOf(value), error, undefined, session.lastFrameTick);
    }
    if (session.state === 'live') {
      if (frame.t === 'auth') return session.close(4400, 'auth comes once');
      session.user!.trace?.received(session, frame, data.length);
      execute(session, frame);
    } else if (session.state === 'opened' && frame.t === 'auth') {
      void login(session, (frame.d as { token: string }).token);
    } else early(session);
  }

  /** Pings and pongs count like any other frame, both as a sign of life and against the budget. */
  function ping(session: Session, data: Buffer): void {
    if (!session.isOpen || !counts(session, data.length)) return;
    session.ws.pong(data);
    session.checkBuffered();
  }

  function pong(session: Session, data: Buffer): void {
    if (!session.isOpen || !counts(session, data.length)) return;
    const about = data.toString();
    if (session.confirms(about)) confirmed(session, about);
  }

  /**
   * Returns false if the client sends more than any client needs to. It is told so, nothing more is read, and the
   * connection is cut a moment later.
   */
  function counts(session: Session, bytes: number): boolean {
    session.lastFrameTick = clock.monotonic();
    if (session.spend(bytes, session.lastFrameTick)) return true;
    sendAway(session);
    session.ws.pause();
    return false;
  }

  /** Handles a first frame that is not `auth` (socket#auth), and anything between `auth` and `hello`. */
  function early(session: Session): void {
    if (session.state === 'opened') session.close(4001, 'auth comes first');
    else session.close(4400, 'hello comes first');
  }

  function malformed(session: Session): void {
    if (session.state !== 'live') return early(session);
    if (++session.invalidInARow >= realtime.invalidFramesInARow) return session.close(4400, 'not JSON text');
    failed(
      session,
      undefined,
      new ApiError('invalid_frame', { message: 'Frames are JSON text.' }),
      undefined,
      session.lastFrameTick,
    );
  }

  function execute(session: Session, frame: Frame): void {
    const since = session.lastFrameTick;
    let result: Promise<unknown> | void;
    try {
      result = run(session, frame);
    } catch (error) {
      return failed(session, frame.id, error, frame.t, since);
    }
    if (result === undefined) return;
    const isSend = frame.t === 'message.send';
    result.then(
      (d) => {
        session.send(ackFrame(frame.id!, d));
        if (isSend) acked(session, clock.monotonic() - since);
      },
      (error: unknown) => failed(session, frame.id, error, frame.t, since),
    );
  }

  function failed(
    session: Session,
    re: string | number | undefined,
    error: unknown,
    type: string | undefined,
    since: number,
  ): void {
    const api = toApiError(error);
    log.failed(session, type, api, since);
    if ((api.row.http ?? 0) >= 500) broken(session);
    if (api.code === 'internal') logger.error({ session: session.id, err: error }, 'a frame failed');
    if (api.code === 'rate_limited' && isOutOfPatience(session)) return sendAway(session, api.retryAfterMs!);
    if (!closeFor(session, api)) session.send(errorFrame(re, api));
  }

  function isOutOfPatience(session: Session): boolean {
    const tick = clock.monotonic();
    if (tick - session.refusedSinceTick > patienceMs) {
      session.refusedSinceTick = tick;
      session.refused = 0;
    }
    return ++session.refused > patience;
  }

  return { message, ping, pong };
}
