import type { RequestListener } from 'node:http';
import type { ErrorCode, Operation, Plane } from '@parley/protocol';
import type { HttpCaller, Services } from '../../features/context.ts';
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
  /** Unset: nobody can sign in to the dashboard, and cookies count for nothing. */
  sessions?: Sessions;
  limiter: RateLimiter;
  turns: OperationTurns;
  logger: Logger;
  metrics: Metrics;
  /** What environments' requests are noted in. */
  recorder: Recorder;
  trustProxy: boolean;
  /** Those that this process serves; health and the pages it always serves. */
  operations: readonly Operation[];
  /** Whether it can do its work; `reason` says why not, or what it has to do without. */
  readiness: () => Promise<Readiness>;
  /** Until then every request but those about health is to come again. */
  started: () => boolean;
  /** What else /readyz tells. */
  details: () => Record<string, string>;
  /** Static pages: path, type and body. */
  pages: Page[];
  /** Web applications, each with a path and all that is below it. */
  apps?: WebApp[];
  /** Requests that never reach the API (file bodies): true when it took the request. It answers after `stamp`, which sets what every answer has. */
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
}

/** Whose request it is: also of one that was refused, where its credential proves it. */
export interface Concern {
  env: { no: number; id: string };
  caller: HttpCaller['kind'];
  callerId?: string;
  user?: number;
}

export interface WebApp {
  path: string;
  answer(
    path: string,
    acceptEncoding: string,
  ): Promise<{ status: number; headers: Record<string, string>; body: Buffer | string }>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: string;
    /** `tenant` unless given. */
    plane?: Plane;
    /** Logged at debug level only. */
    quiet?: boolean;
  }
  interface FastifyRequest {
    /** The environment that it concerns, once the credential said so. */
    concerns?: Concern;
    /** The error that it was answered with. */
    failure?: ErrorCode;
    /** The key that the caller's requests are counted by, once it is known. */
    who?: string;
  }
}
