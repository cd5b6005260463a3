import type { Readable } from 'node:stream';
import { ApiError } from '@parley/protocol';
import type {
  AccountRole,
  Caller as CallerKind,
  EphemeralFrame,
  Environment as EnvironmentRecord,
  Input,
  OperationName,
  Output,
  PlanName,
  Plan,
  SyncResult,
} from '@parley/protocol';
import type { Db } from '../platform/postgres/db.ts';
import type { Clock, Ids } from '../platform/clock.ts';
import type { Vault } from '../platform/secrets.ts';
import type { Happenings } from './happenings.ts';
import type { NodeMessages, SocketChoice } from './node-bus.ts';
import type { ConversationLog } from '../log/conversation-log.ts';

/** An environment: the record that callers see, and the number that rows refer to it by. */
export interface Environment extends EnvironmentRecord {
  no: number;
  /** Grows with every change of its word lists; 0: it never had one. */
  words: number;
  /** The same of its hooks. */
  hooks: number;
}

/** A person who signed in to the dashboard. */
export interface Person {
  account: { no: number; id: string; email: string };
  session: { id: string; signedInAt: string };
}

/**
 * Who is calling, after authentication, as a record of what it may do. Operations ask for what they need of it, so that
 * another kind of caller is one more function of callers.ts and changes no operation. `kind` is only compared with the
 * `callers` that an operation declares, and written to logs.
 */
export interface Caller {
  kind: CallerKind;
  /** The user it acts as: it sees and changes what this user's memberships allow. Null: what its place allows. */
  user: { no: number; id: string } | null;
  /** It came with this secret key, and signs tokens with it. */
  keyId: string | null;
  /** It is a person: the audit log has what it changes and what texts it reads, and it confirms what cannot be undone. */
  person: Person | null;
  /** It may manage everything, under this name. */
  operator: string | null;
}

/** A caller with a key or a token, which says in which environment it may do so. */
export interface TenantCaller extends Caller {
  kind: 'server' | 'client';
  env: Environment;
}

/**
 * What every operation gets besides its input. Operations of the control plane that concern no single environment get
 * only this.
 */
export interface ControlContext {
  caller: Caller;
  db: Db;
  services: ControlServices;
  requestId: string;
  /** The IP address that the call came from; unset if it did not come over REST. */
  ip?: string;
  /** Set when the request carries an Idempotency-Key: makes a send without clientMsgId safe to repeat. */
  idempotencyKey?: string;
  /**
   * Set if `db` is a transaction around the whole operation: takes work that must run outside of it, after its commit
   * and before the answer.
   */
  afterwards?: (work: (db: Db) => Promise<void>) => void;
}

/** The context of an operation that concerns one environment. */
export interface EnvironmentContext extends ControlContext {
  env: Environment;
}

/** What is known about the HTTP request of a browser, for sessions and passkeys. */
export interface HttpRequest {
  address: string;
  userAgent: string;
  /** The host name under which the browser reached us; `secure` is true if it came over https. */
  host: string;
  secure: boolean;
  /** The session token in the cookie, whether or not it is valid. */
  cookie: string | null;
}

export interface Organization {
  no: number;
  id: string;
  name: string;
  createdAt: string;
}

/** What a call of the control plane concerns: an environment or an organization, and the role that the caller has there. */
export interface Place {
  env?: Environment;
  organization?: Organization;
  role?: AccountRole;
}

/** The context of an operation of the control plane. The operator's has no place, because everything is within reach. */
export type ManageContext = ControlContext & Place;

/** The account whose memberships restrict a list; null for the operator, whose lists are not restricted. */
export function accountOf({ caller }: ManageContext): number | null {
  if (caller.operator !== null) return null;
  if (!caller.person) throw new ApiError('forbidden');
  return caller.person.account.no;
}

/**
 * The context of any operation that is called over HTTP. The operation's scope says whether `env` or `organization`
 * is set.
 */
export interface HttpContext extends ControlContext, Place {
  services: Services;
  /** Set for operations of the control plane. */
  http?: HttpRequest;
}

/** The context of an operation on the caller's own account, or of one that needs no account. */
export interface AccountContext extends HttpContext {
  http: HttpRequest;
}

/** The context of an operation on one organization, by a person who belongs to it. */
export interface OrganizationContext extends AccountContext {
  organization: Organization;
  role: AccountRole;
}

/** The function that runs the operation `N`. */
export type Operation<C, N extends OperationName> = (
  ctx: C,
  input: Input<N>,
) => Promise<unknown extends Output<N> ? void : Output<N>>;

/** The context of an operation of the tenant plane, which only a running service has. */
export interface Context extends EnvironmentContext {
  services: Services;
}

/** Changes that other parts of the service must hear of, after the commit. */
export interface Signals {
  /** The user's tokens were revoked, or the user was deactivated or erased: the user's sockets close with this code. */
  userOut(env: number, user: number, code: 4001 | 4003): void;
  /** The socket of this session, on the given node of the service, closes with 4001. */
  sessionOut(node: string, session: string): void;
  /** The user blocked the other, or unblocked it; `cid` is their direct conversation, which need not exist. */
  blocked(pair: NodeMessages['block']): void;
  /** The user was silenced, in a group or in the environment. */
  silenced(user: number): void;
  /** A member's read or delivery mark moved. */
  receipt(mark: {
    env: number;
    cid: string;
    user: number;
    userId: string;
    lastReadSeq?: number;
    lastDeliveredSeq?: number;
  }): void;
}

export interface ClosedSession {
  env: number;
  user: number;
  session: string;
}

/** A client confirmed that it got a frame. */
export interface Confirmation {
  env: number;
  user: number;
  /** What the sender of the frame gave as `confirm`. */
  about: string;
}

/** The open sockets of users, on any node of the service. */
export interface Sockets {
  /** How many sockets of the environment are open. */
  connections(env: number): Promise<number>;
  /**
   * Sends a frame outside the seq stream to every open socket of these users; users without one miss it. With `only`
   * it goes to that session alone, with `except` to all but that one.
   */
  toUsers(env: number, users: readonly number[], frame: EphemeralFrame, where?: SocketChoice): void;
  /** Sends a frame to every open socket of the conversation's members. */
  toConversation(cid: string, frame: EphemeralFrame): void;
  /**
   * Calls the listener for sessions that ended: on the node where the socket was or, if that node died, on another
   * one as soon as its lease has ended (30 s). A session may be reported twice, and one whose node was only frozen
   * may be reported although it continues. A listener that must not miss any also has to check from time to time.
   * Returns the function that removes the listener.
   */
  onSessionClosed(listener: (closed: ClosedSession) => void): () => void;
  /** The listener is called for frames sent with `confirm`, once for each socket that got them, on the socket's node. */
  onConfirmed(listener: (confirmed: Confirmation) => void): () => void;
}

/** Follows what goes over a user's sockets, on whichever node they are. */
export interface Traces {
  /** Returns a stream of JSON lines that ends by itself; throws `rate_limited` if too many are open. */
  open(wanted: { env: number; user: number; seconds: number; sessions: number }): Promise<Readable>;
}

/** Services that the command line has too. */
export interface ControlServices {
  clock: Clock;
  ids: Ids;
  vault: Vault;
  /** The origin of links in mails and on the command line. */
  linkOrigin(): string;
}

/** What operations use of the running service. A feature adds its own services here, in the file that declares them. */
export interface Services extends ControlServices {
  log: ConversationLog;
  /** Returns what changed for a user since a cursor; questions that arrive together become one query. */
  syncer: (env: number, user: number, cursor: string | null) => Promise<SyncResult>;
  signals: Signals;
  sockets: Sockets;
  traces: Traces;
  plans: Record<PlanName, Plan>;
  happenings: Happenings;
}

/**
 * An answer with headers, or with another status than the first that the operation declares. A 204 has no body,
 * whatever is given.
 */
export class Reply<T> {
  readonly status: number;
  readonly body: T;
  readonly headers: Record<string, string>;
  constructor(status: number, body: T, headers: Record<string, string> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** The answer of a change that took a seq in the conversation. Acks on the socket contain the seq, REST answers do not. */
export class Change<T> extends Reply<T> {
  readonly eventSeq: number;
  constructor(status: number, body: T, eventSeq: number) {
    super(status, body);
    this.eventSeq = eventSeq;
  }
}
