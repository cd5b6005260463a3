import { clientFrames } from '@parley/protocol';
import type { ApiError, CloseCode } from '@parley/protocol';
import { provenBy } from '../../features/tenancy/authenticate.ts';
import type { Clock } from '../../platform/clock.ts';
import { closeCodeOf } from './close.ts';
import type { GatewayOptions } from './options.ts';
import type { Session } from './session.ts';

/**
 * What is stored about an environment's sockets: in its log, frames that failed, logins that were refused and sockets
 * that we closed; and when each socket was opened and closed.
 */
export function createSocketLog({
  recorder,
  history,
  clock,
}: Pick<GatewayOptions, 'recorder' | 'history'> & { clock: Clock }) {
  function opened(session: Session): void {
    session.loggedInAt = clock.now();
    history.opened(rowOf(session));
  }

  /**
   * A frame was answered with an error.
   * @param type the type of the frame, if it is a known one.
   * @param since the tick at which the frame arrived.
   */
  function failed(session: Session, type: string | undefined, error: ApiError, since: number): void {
    const status = closeCodeOf(error);
    if (status !== null) session.noted = true;
    add(session, { operation: operationOf(type), code: error.code, status, ms: clock.monotonic() - since });
  }

  /**
   * A login was refused. It appears in an environment's log if the refused credential proves to which environment it
   * belongs.
   */
  function refused(session: Session, error: ApiError): void {
    session.noted = true;
    const proven = provenBy(error);
    const env = session.env?.no ?? proven?.env.no;
    if (env === undefined) return;
    recorder.add({
      env,
      at: clock.now(),
      kind: 'socket',
      failed: true,
      ms: clock.monotonic() - session.openedTick,
      operation: 'auth',
      status: closeCodeOf(error),
      code: error.code,
      caller: 'client',
      callerId: proven?.keyId,
      user: session.user?.no ?? proven?.user ?? undefined,
      address: session.address,
    });
  }

  /** A live socket has closed. It is an error if we closed it for a reason, and none if the client closed it. */
  function closed(session: Session): void {
    history.closed({ ...rowOf(session), closeCode: session.closeCode });
    const code = putOut[session.closeCode as CloseCode];
    if (code === undefined || session.noted) return;
    add(session, { operation: 'close', code, status: session.closeCode, ms: 0 });
  }

  function add(
    session: Session,
    what: { operation: string; code: string; status: number | null; ms: number },
  ): void {
    const { user } = session;
    if (!user) return;
    recorder.add({
      env: user.env,
      at: clock.now(),
      kind: 'socket',
      failed: true,
      ...what,
      caller: 'client',
      callerId: session.keyId ?? undefined,
      user: user.no,
      address: session.address,
      session: session.id,
    });
  }

  return { opened, failed, refused, closed };
}

export type SocketLog = ReturnType<typeof createSocketLog>;

/** The error code that a close code is logged as. */
const putOut: { readonly [C in CloseCode]?: string } = {
  1009: 'body_too_large',
  1013: 'service_unavailable',
  4001: 'token_invalid',
  4003: 'forbidden',
  4008: 'rate_limited',
  4009: 'too_many_connections',
  4400: 'invalid_frame',
};

const rowOf = (session: Session) => ({
  env: session.user!.env,
  id: session.id,
  user: session.user!.no,
  address: session.address,
  sdk: session.sdk,
  openedAt: session.loggedInAt,
});

function operationOf(type: string | undefined): string {
  const frame = (clientFrames as Record<string, { runs?: { operation: string } } | undefined>)[type ?? ''];
  return frame?.runs?.operation ?? type ?? 'frame';
}
