import type { ErrorCode } from '@parley/protocol';

/** What a process asks the media node of a call, and what it is answered. */

export interface MediaRequest {
  method: string;
  env: number;
  call: number;
  user: number;
  d: Record<string, unknown>;
}

export type MediaAnswer =
  { value: unknown } | { error: { code: ErrorCode; message: string; retryAfterMs: number | null } };
