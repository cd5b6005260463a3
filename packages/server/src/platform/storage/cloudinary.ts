import { createHash } from 'node:crypto';
import { keysBelow, StorageUnavailable } from './port.ts';
import type { MediaStorage, Resource, StorageDeps } from './port.ts';
import { call, readHead, unexpected } from './remote.ts';

/** storage#media, shape (a). */
export interface CloudinaryConfig {
  provider: 'cloudinary';
  /** cloudinary://api_key:api_secret@cloud_name */
  cloudinaryUrl: string;
  folder?: string;
  endpoint?: string;
  signatureAlgorithm?: 'sha1' | 'sha256';
}

/** A signature is valid for one hour from its timestamp (Cloudinary, "Generating authentication signatures"). */
const SIGNATURE_SECONDS = 3600;
/** Assets of this delivery type can be reached by signed URLs only. */
const TYPE = 'private';

/** Cloudinary's name of each format that it stores as an image or video; raw assets have none. */
const formats: Record<string, string> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/heic': 'heic',
  'image/heif': 'heic',
  'image/bmp': 'bmp',
  'video/mp4': 'mp4',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'video/3gpp': '3gp',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'audio/wav': 'wav',
  'audio/mp4': 'm4a',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
  'audio/webm': 'webm',
};

export function parseCloudinaryUrl(text: string): { apiKey: string; apiSecret: string; cloud: string } {
  const url = URL.parse(text);
  if (url?.protocol !== 'cloudinary:' || !url.username || !url.password || !/^[\w-]+$/.test(url.hostname)) {
    throw new TypeError('expected cloudinary://API_KEY:API_SECRET@CLOUD_NAME');
  }
  const [apiKey, apiSecret] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  return { apiKey, apiSecret, cloud: url.hostname };
}

/**
 * Sorts and joins all parameters except file, cloud_name, resource_type and api_key, appends the secret, and hashes
 * the result.
 */
export function cloudinarySignature(
  params: Record<string, string>,
  apiSecret: string,
  algorithm: 'sha1' | 'sha256' = 'sha1',
): string {
  const text = Object.entries(params)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  return createHash(algorithm)
    .update(text + apiSecret)
    .digest('hex');
}

/**
 * Cloudinary. The signed form fixes the public id and forbids overwriting, but neither length nor type: completion
 * checks both by `inspect`. Downloads get a file name that Cloudinary makes from the public id.
 */
export function createCloudinary(config: CloudinaryConfig, deps: StorageDeps): MediaStorage {
  const { apiKey, apiSecret, cloud } = parseCloudinaryUrl(config.cloudinaryUrl);
  const root = `${(config.endpoint ?? 'https://api.cloudinary.com').replace(/\/+$/, '')}/v1_1/${cloud}`;
  const publicId = keysBelow(config.folder);
  const seconds = (date: Date) => Math.floor(date.getTime() / 1000);

  const signed = (params: Record<string, string>): Record<string, string> => ({
    ...params,
    api_key: apiKey,
    signature: cloudinarySignature(params, apiSecret, config.signatureAlgorithm),
  });

  function download(
    id: string,
    resource: Resource,
    format: string | undefined,
    attachment: boolean,
    expiresIn: number,
  ) {
    const now = seconds(deps.now());
    const params: Record<string, string> = {
      public_id: id,
      type: TYPE,
      timestamp: String(now),
      expires_at: String(now + expiresIn),
    };
    if (format && resource !== 'raw') params['format'] = format;
    if (attachment) params['attachment'] = 'true';
    return `${root}/${resource}/download?${new URLSearchParams(signed(params))}`;
  }

  return {
    provider: 'cloudinary',
    async ticket(o) {
      return {
        method: 'POST',
        url: `${root}/${o.resource}/upload`,
        fields: signed({
          public_id: publicId(o.key),
          type: TYPE,
          overwrite: 'false',
          // Back-dated, so that Cloudinary's hour ends when the ticket does.
          timestamp: String(seconds(o.expiresAt) - SIGNATURE_SECONDS),
        }),
      };
    },
    async inspect(key, resource) {
      const id = publicId(key);
      const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`;
      const url = `${root}/resources/${resource}/${TYPE}/${encodeURIComponent(id)}`;
      const answer = await call(deps, 'cloudinary', { url, headers: { authorization } });
      if (answer.status === 404) return null;
      if (answer.status !== 200) throw unexpected('cloudinary', 'looking up', answer.status);
      const asset = parseAsset(answer.body);
      const head = await readHead(deps, 'cloudinary', download(id, resource, asset.format, false, 60));
      if (!('found' in head)) throw unexpected('cloudinary', 'reading', head.answer.status);
      return { ...head.found, size: asset.bytes, width: asset.width, height: asset.height };
    },
    async downloadUrl(o) {
      const attachment = o.disposition === 'attachment';
      return download(publicId(o.key), o.resource, formats[o.contentType], attachment, o.expiresIn);
    },
    async remove(key, resource) {
      const params = {
        public_id: publicId(key),
        type: TYPE,
        invalidate: 'true',
        timestamp: String(seconds(deps.now())),
      };
      const answer = await call(deps, 'cloudinary', {
        url: `${root}/${resource}/destroy`,
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(signed(params)).toString(),
      });
      // The result is 'ok' or 'not found'; after both the object does not exist.
      if (answer.status !== 200 && answer.status !== 404)
        throw unexpected('cloudinary', 'removing', answer.status);
    },
  };
}

function parseAsset(body: Buffer): { bytes: number; format?: string; width?: number; height?: number } {
  try {
    const asset = JSON.parse(body.toString()) as Record<string, unknown>;
    const number = (value: unknown) => (typeof value === 'number' && value > 0 ? value : undefined);
    if (typeof asset['bytes'] !== 'number') throw new TypeError('no bytes');
    const format = typeof asset['format'] === 'string' ? asset['format'] : undefined;
    return { bytes: asset['bytes'], format, width: number(asset['width']), height: number(asset['height']) };
  } catch (cause) {
    throw new StorageUnavailable('cloudinary gave an unreadable answer', { cause });
  }
}
