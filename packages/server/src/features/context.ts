import type { Readable } from 'node:stream';
import type {
  AccountRole,
  EphemeralFrame,
  Environment as EnvironmentRecord,
  PlanName,
  Plan,
  SyncResult,
} from '@parley/protocol';
import type { Db } from '../platform/postgres/db.ts';
import type { Clock, Ids } from '../platform/clock.ts';
import type { Vault } from '../platform/secrets.ts';
import type { Organization } from './accounts/organizations.ts';
import type { Analytics } from './analytics/service.ts';
import type { AccountServices } from './accounts/services.ts';
import type { CallServices } from './calls/services.ts';
import type { Storage } from './storage/service.ts';
import type { Media } from './uploads/media.ts';
import type { ConversationLog } from '../log/conversation-log.ts';
import type { Push } from './push/service.ts';
import type { Webhooks } from './webhooks/service.ts';

/** The record that callers see, and the number that rows refer to. */
export interface Environment extends EnvironmentRecord {
  no: number;
}

/** A key or a token says whom it speaks for, and in which environment. */
export type TenantCaller =
  | { kind: 'server'; env: Environment; keyId: string }
  | { kind: 'client'; env: Environment; user: { no: number; id: string } };

/** Somebody signed in to the dashboard. */
export interface DashboardCaller {
  kind: 'dashboard';
  account: { no: number; id: string; email: string };
  session: { id: string; signedInAt: string };
}

/** Those who manage environments: people, whoever runs the command line, and whoever is not signed in yet. */
export type ControlCaller = DashboardCaller | { kind: 'anyone' } | { kind: 'operator'; name: string };

/** Who is calling, after authentication. */
export type Caller = TenantCaller | ControlCaller;
/** The operator comes in by the command line alone. */
export type HttpCaller = Exclude<Caller, { kind: 'operator' }>;

/** What every operation has besides its input. Those of the control plane that concern no single environment have no more. */
export interface ControlContext {
  caller: Caller;
  db: Db;
  services: ControlServices;
  requestId: string;
  /** The address that the call came from; unset where it did not come over REST. */
  ip?: string;
  /** Set when the request carries an Idempotency-Key: makes a send without clientMsgId safe to repeat. */
  idempotencyKey?: string;
  /** Where `db` is a transaction around the whole operation: takes work that must not be part of it, done before the answer. */
  afterwards?: (work: (db: Db) => Promise<void>) => void;
}

/** Of an operation that concerns one environment. */
export interface EnvironmentContext extends ControlContext {
  env: Environment;
}

/** What the dashboard says about itself, for sessions and passkeys. */
export interface HttpRequest {
  address: string;
  userAgent: string;
  /** Under which name and over what the browser reached us. */
  host: string;
  secure: boolean;
  /** The session's token, whether it opens one or not. */
  cookie: string | null;
}

/** What a call of the control plane concerns: an environment or an organization, and the role that the caller has there. */
export interface Place {
  env?: Environment;
  organization?: Organization;
  role?: AccountRole;
}

/** Of any operation that is called over HTTP; what of the place it has the operation's scope says. */
export interface HttpContext extends ControlContext, Place {
  caller: HttpCaller;
  services: Services;
  /** Of the control plane's operations. */
  http?: HttpRequest;
}

/** Of an operation on the caller's own account, or on none. */
export interface AccountContext extends HttpContext {
  http: HttpRequest;
}

/** Of an operation on one organization, by somebody who belongs to it. */
export interface OrganizationContext extends AccountContext {
  organization: Organization;
  role: AccountRole;
}

/** Of an operation of the tenant plane, which a whole service runs. */
export interface Context extends EnvironmentContext {
  services: Services;
}

/** Changes that other parts of the service must hear of, after the commit. */
export interface Signals {
  /** Tokens were revoked, the user was deactivated or erased: its sockets close with this code. */
  userOut(env: number, user: number, code: 4001 | 4003): void;
  /** One of a user's sockets, on this node of the service, closes with 4001. */
  sessionOut(node: string, session: string): void;
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

/** Which of a user's sockets. */
export interface SocketChoice {
  only?: string;
  except?: string;
}

/** The live sockets of users, on whichever node of the service they are. */
export interface Sockets {
  /** Open ones of an environment. */
  connections(env: number): Promise<number>;
  /**
   * Sends a frame outside the seq stream to every live socket of these users; who has none misses it. With `only` to that one
   * session, with `except` to all the others.
   */
  toUsers(env: number, users: readonly number[], frame: EphemeralFrame, where?: SocketChoice): void;
  /** To every live socket of the members of a conversation. */
  toConversation(cid: string, frame: EphemeralFrame): void;
  /**
   * Tells of sessions that ended: on the node where the socket was, or, when that node died, on one of the others as soon as its
   * lease has ended (30 s). A session may be told twice, and one whose node was only frozen goes on although it was told; where
   * nothing may be missed, whoever listens also looks from time to time. Returns the function that ends it.
   */
  onSessionClosed(listener: (closed: ClosedSession) => void): () => void;
}

/** Follows what goes over a user's sockets, on whichever node they are. */
export interface Traces {
  /** A stream of lines of JSON that ends by itself; throws `rate_limited` where too many are open. */
  open(wanted: { env: number; user: number; seconds: number; sessions: number }): Promise<Readable>;
}

/** What the command line has too. */
export interface ControlServices {
  clock: Clock;
  ids: Ids;
  vault: Vault;
  /** Where links in mails and on the command line lead to. */
  linkOrigin(): string;
}

export interface Services extends ControlServices {
  log: ConversationLog;
  media: Media;
  webhooks: Webhooks;
  push: Push;
  /** Answers what changed for a user since a cursor; questions that come together are one query. */
  syncer: (env: number, user: number, cursor: string | null) => Promise<SyncResult>;
  signals: Signals;
  sockets: Sockets;
  traces: Traces;
  calls: CallServices;
  accounts: AccountServices;
  analytics: Analytics;
  /** Sockets of an environment that are open now, on all nodes. */
  connections(env: number): Promise<number>;
  plans: Record<PlanName, Plan>;
  /** Customers' own history databases, and how long the buffer before them holds messages and events. */
  storage: Storage;
}

/** An answer with another status than the operation's first, or with headers; 204 has no body, whatever is given. */
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

/** The answer of a change that took a seq in the conversation: acks on the socket tell it, REST does not. */
export class Change<T> extends Reply<T> {
  readonly eventSeq: number;
  constructor(status: number, body: T, eventSeq: number) {
    super(status, body);
    this.eventSeq = eventSeq;
  }
}
