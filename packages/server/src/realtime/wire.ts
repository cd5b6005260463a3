import type { ApiError } from '@parley/protocol';

/** WebSocket frames as bytes: a text frame is encoded once and written to any number of sockets (RFC 6455, 5.2). */

export function textFrame(payload: string): Buffer {
  const length = Buffer.byteLength(payload);
  const head = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(head + length);
  frame[0] = 0x81;
  if (head === 2) frame[1] = length;
  else if (head === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(payload, head, 'utf8');
  return frame;
}

export const ackFrame = (re: string | number, d: unknown): Buffer =>
  textFrame(`{"t":"ack","re":${JSON.stringify(re)},"d":${JSON.stringify(d)}}`);

export const errorFrame = (
  re: string | number | undefined,
  {
    code,
    message,
    retryAfterMs,
    details,
  }: Pick<ApiError, 'message' | 'retryAfterMs'> & {
    code: string;
    details?: Record<string, unknown> | undefined;
  },
): Buffer =>
  textFrame(
    JSON.stringify({ t: 'error', re, code, message, retryAfterMs: retryAfterMs ?? undefined, details }),
  );

export const pushFrame = (t: string, d: unknown): Buffer =>
  textFrame(`{"t":"${t}","d":${JSON.stringify(d)}}`);
