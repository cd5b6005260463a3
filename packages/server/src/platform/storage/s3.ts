import { contentDisposition, keysBelow } from './port.ts';
import type { MediaStorage, StorageDeps } from './port.ts';
import { call, readHead, unexpected } from './remote.ts';
import { presign } from './sigv4.ts';
import type { SigV4Options } from './sigv4.ts';

export const s3Presets = ['aws', 'r2', 'minio', 'spaces', 'b2', 'wasabi', 'gcs', 'custom'] as const;
export type S3Preset = (typeof s3Presets)[number];

/** storage#media, shape (b). */
export interface S3Config {
  provider: 's3';
  preset?: S3Preset;
  endpoint?: string;
  region?: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  prefix?: string;
  forcePathStyle?: boolean;
}

interface PresetDefaults {
  /** If absent, the operator must name the endpoint, because it is their own. */
  endpoint?: (region: string) => string;
  /** If absent, the operator must name the region, because it is part of the endpoint. */
  region?: string;
  pathStyle: boolean;
  /** True if the provider honours `If-None-Match: *`, so that a ticket can write only once. */
  writeOnce?: boolean;
}

const presets: Record<S3Preset, PresetDefaults> = {
  aws: {
    endpoint: (r) => `https://s3.${r}.amazonaws.com`,
    region: 'us-east-1',
    pathStyle: false,
    writeOnce: true,
  },
  r2: { region: 'auto', pathStyle: true, writeOnce: true },
  minio: { region: 'us-east-1', pathStyle: true, writeOnce: true },
  spaces: { endpoint: (r) => `https://${r}.digitaloceanspaces.com`, pathStyle: false },
  b2: { endpoint: (r) => `https://s3.${r}.backblazeb2.com`, pathStyle: false },
  wasabi: { endpoint: (r) => `https://s3.${r}.wasabisys.com`, region: 'us-east-1', pathStyle: false },
  gcs: { endpoint: () => 'https://storage.googleapis.com', region: 'auto', pathStyle: true },
  custom: { region: 'us-east-1', pathStyle: true },
};

/** The endpoint, region and style that a configuration means. Throws TypeError if something is missing. */
export function resolveS3(config: S3Config): { base: URL; region: string; writeOnce: boolean } {
  const preset = presets[config.preset ?? (config.endpoint ? 'custom' : 'aws')];
  if (!preset) throw new TypeError(`preset must be one of ${s3Presets.join(', ')}`);
  const region = config.region || preset.region;
  if (!region) throw new TypeError('region is required for this preset');
  const endpoint = config.endpoint || preset.endpoint?.(region);
  if (!endpoint) throw new TypeError('endpoint is required for this preset');
  const base = URL.parse(endpoint);
  if (!base || !/^https?:$/.test(base.protocol) || base.username || base.search || base.hash) {
    throw new TypeError('endpoint must be an http(s) URL without credentials or query');
  }
  if (!/^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i.test(config.bucket)) throw new TypeError('not a bucket name');
  // A bucket name with a dot does not fit the TLS certificate of a virtual host.
  const pathStyle = config.forcePathStyle ?? (preset.pathStyle || config.bucket.includes('.'));
  if (pathStyle) base.pathname = `${base.pathname.replace(/\/+$/, '')}/${config.bucket}`;
  else base.hostname = `${config.bucket}.${base.hostname}`;
  return { base, region, writeOnce: preset.writeOnce ?? false };
}

export function createS3(config: S3Config, deps: StorageDeps): MediaStorage {
  const { base, region, writeOnce } = resolveS3(config);
  const place = keysBelow(config.prefix);
  const root = base.href.replace(/\/+$/, '');

  const sign = (
    key: string,
    method: SigV4Options['method'],
    expiresIn: number,
    more: { query?: Record<string, string>; headers?: Record<string, string> } = {},
  ) =>
    presign({
      method,
      url: `${root}/${place(key)}`,
      region,
      accessKeyId: config.accessKeyId,
      secretAccessKey: config.secretAccessKey,
      now: deps.now(),
      expiresIn,
      ...more,
    });

  return {
    provider: 's3',
    async ticket(o) {
      // Without writeOnce the ticket could replace a completed object until it expires; downloads then still carry
      // the type and disposition of the attachment, never those of the object.
      const headers: Record<string, string> = { 'content-type': o.contentType };
      if (writeOnce) headers['if-none-match'] = '*';
      const expiresIn = Math.max(1, Math.round((o.expiresAt.getTime() - deps.now().getTime()) / 1000));
      const url = sign(o.key, 'PUT', expiresIn, {
        headers: { ...headers, 'content-length': String(o.size) },
      });
      return { method: 'PUT', url, headers };
    },
    async inspect(key) {
      const head = await readHead(deps, 's3', sign(key, 'GET', 60));
      if ('found' in head) return head.found;
      // A missing bucket is a broken configuration, not a missing object.
      if (head.answer.status === 404 && !head.answer.body.includes('NoSuchBucket')) return null;
      // AWS answers 403 for a missing object where the key lacks s3:ListBucket, as for one it may not read.
      throw unexpected('s3', 'reading (the key needs GetObject and ListBucket)', head.answer.status);
    },
    async downloadUrl(o) {
      return sign(o.key, 'GET', o.expiresIn, {
        query: {
          'response-content-type': o.contentType,
          'response-content-disposition': contentDisposition(o.disposition, o.filename),
        },
      });
    },
    async remove(key) {
      const { status } = await call(deps, 's3', { url: sign(key, 'DELETE', 60), method: 'DELETE' });
      if (status !== 204 && status !== 200 && status !== 404) throw unexpected('s3', 'removing', status);
    },
  };
}
