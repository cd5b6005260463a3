import type { IncomingMessage, RequestListener } from 'node:http';
import type { ErrorCode, Operation, Plane } from '@parley/protocol';
import type { Caller, Services } from '../../features/context.ts';
import type { Handlers } from '../../features/handlers.ts';
import type { Authenticator } from '../../features/tenancy/authenticate.ts';
import type { Sessions } from '../../features/accounts/authenticate.ts';
import type { Recorder } from '../../features/logs/recorder.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import type { OperationTurns } from '../turns.ts';

export interface RestOptions {
  db: Db;
  services: Services;
  handlers: Handlers;
  authenticator: Authenticator;
  /** If unset, nobody can sign in to the dashboard, and cookies are ignored. */
  sessions?: Sessions;
  limiter: RateLimiter;
  turns: OperationTurns;
  logger: Logger;
  metrics: Metrics;
  /** Records the requests of environments. */
  recorder: Recorder;
  trustProxy: boolean;
  /** Whether a request comes from this machine, directly (this-machine.ts). */
  isLocal: (request: IncomingMessage) => boolean;
  /** The operations that this process serves; it always serves health and the pages. */
  operations: readonly Operation[];
  /** Whether the process can do its work; `reason` says why not, or what is missing. */
  readiness: () => Promise<Readiness>;
  /** While false, every request except those about health is told to come again. */
  started: () => boolean;
  /** Further fields of /readyz. */
  details: () => Record<string, string>;
  /** Static pages, each with a path, type and body. */
  pages: Page[];
  /** Web applications, each with a path and everything below it. */
  apps?: WebApp[];
  /**
   * Takes requests that must not reach the API (file bodies); returns true if it took the request. It must await
   * `stamp`, which sets the headers of every answer, before it answers.
   */
  intercept?: (...args: [...Parameters<RequestListener>, stamp: () => Promise<void>]) => boolean;
}

export interface Readiness {
  status: 'ready' | 'degraded' | 'not ready';
  reason?: string;
}

export interface Page {
  path: string;
  contentType: string;
  headers?: Record<string, string>;
  body: () => Promise<Buffer | string>;
  /** The body for requests that do not come from this machine; the same if unset. */
  elsewhere?: Page['body'];
}

/** The environment and caller of a request, also of a refused one if its credential proves it. */
export interface Concern {
  env: { no: number; id: string };
  caller: Caller['kind'];
  callerId?: string;
  user?: number;
}

export interface WebApp {
  path: string;
  answer(
    path: string,
    acceptEncoding: string,
    query: string,
  ): Promise<{ status: number; headers: Record<string, string>; body: Buffer | string }>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: string;
    /** The default is `tenant`. */
    plane?: Plane;
    /** If true, it is logged at debug level only. */
    quiet?: boolean;
  }
  interface FastifyRequest {
    /** The environment that the request concerns, once the credential tells. */
    concerns?: Concern;
    /** The code of the error that was answered. */
    failure?: ErrorCode;
    /** The key that the caller's requests are counted by, once it is known. */
    who?: string;
  }
}
