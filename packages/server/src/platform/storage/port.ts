import type { Output } from '@parley/protocol';
import type { Outbound } from '../outbound/outbound.ts';

/** Media storage. Files go directly between client and storage (uploads#direct); the server signs, inspects and removes. */
export interface MediaStorage {
  provider: 'managed' | 's3' | 'azure' | 'cloudinary';
  /** What the client needs to upload one object itself (uploads#ticket). */
  ticket(o: TicketRequest): Promise<Ticket>;
  /** What is really stored; null if the object does not exist. */
  inspect(key: string, resource: Resource): Promise<StoredObject | null>;
  downloadUrl(o: DownloadRequest): Promise<string>;
  /** Removing an object that does not exist succeeds. */
  remove(key: string, resource: Resource): Promise<void>;
}

/** The resource segment of the image-hosting provider: `video` includes audio, `raw` is everything else. */
export type Resource = 'image' | 'video' | 'raw';

export interface TicketRequest {
  key: string;
  contentType: string;
  size: number;
  filename: string;
  resource: Resource;
  expiresAt: Date;
}

/** POST has form fields to send before the `file`, PUT has headers; the browser adds the length. */
export type Ticket = Output<'uploads.create'>['upload'];

export interface StoredObject {
  size: number;
  /** The first bytes, at most HEAD_BYTES. */
  head: Uint8Array;
  /** Set if the provider measures images itself. */
  width?: number;
  height?: number;
}

export interface DownloadRequest {
  key: string;
  resource: Resource;
  filename: string;
  contentType: string;
  disposition: 'inline' | 'attachment';
  /** Seconds. */
  expiresIn: number;
}

/** What every adapter gets from outside. */
export interface StorageDeps {
  request: Outbound['request'];
  now: () => Date;
}

/** The provider cannot be reached, or does not do what it was asked (uploads#storage-unavailable). */
export class StorageUnavailable extends Error {
  override name = 'StorageUnavailable';
}

/** Bytes; enough for the frame header of a photo that follows its EXIF block and thumbnail. */
export const HEAD_BYTES = 64 * 1024;

/** Keys are made by the server. A key that could leave its prefix or would need escaping is a bug of the caller. */
export function checkKey(key: string): string {
  if (key.length > 512 || !/^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/.test(key)) {
    throw new TypeError(`not a storage key: ${JSON.stringify(key)}`);
  }
  return key;
}

/** Returns a function that puts keys below the operator's folder. Throws at once if the folder's name cannot work. */
export function keysBelow(prefix: string | undefined): (key: string) => string {
  const trimmed = prefix?.replace(/^\/+|\/+$/g, '');
  if (!trimmed) return checkKey;
  if (!/^[\w-]+(\/[\w-]+)*$/.test(trimmed))
    throw new TypeError('a prefix or folder takes letters, digits, "-", "_" and "/"');
  return (key) => `${trimmed}/${checkKey(key)}`;
}

/** RFC 6266 with RFC 5987: an ASCII name for old readers, the real one as filename*. */
export function contentDisposition(disposition: 'inline' | 'attachment', filename: string): string {
  // Lone surrogates, control characters and path separators are not allowed in a name.
  const name = filename.toWellFormed().replace(/[\p{Cc}\p{Cf}/\\]/gu, '_');
  const ascii = name.replace(/[^ -~]|["%;]/g, '_');
  const star = encodeURIComponent(name).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${disposition}; filename="${ascii}"; filename*=UTF-8''${star}`;
}
