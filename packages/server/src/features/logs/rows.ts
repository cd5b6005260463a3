import type { Caller, LogKind } from '@parley/protocol';

/** One row of the log. It never contains a body, a text or a secret. */
export interface LogRow {
  env: number;
  /** Wall time, in milliseconds. */
  at: number;
  kind: LogKind;
  failed: boolean;
  ms: number;
  requestId?: string;
  method?: string;
  operation?: string;
  status?: number | null;
  code?: string | null;
  caller?: Caller;
  callerId?: string;
  user?: number;
  address?: string;
  session?: string;
  webhook?: string;
  delivery?: string;
}

export const activityNames = [
  'messages',
  'requests',
  'errors',
  'server_errors',
  'socket_errors',
  'webhooks_ok',
  'webhooks_failed',
] as const;
export type Counts = Record<(typeof activityNames)[number], number>;
