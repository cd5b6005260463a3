import { createAzure } from './azure.ts';
import type { AzureConfig } from './azure.ts';
import { createCloudinary } from './cloudinary.ts';
import type { CloudinaryConfig } from './cloudinary.ts';
import type { MediaStorage, StorageDeps } from './port.ts';
import { createS3, s3Presets } from './s3.ts';
import type { S3Config, S3Preset } from './s3.ts';

export type MediaConfig = S3Config | AzureConfig | CloudinaryConfig;

/** Throws TypeError if the configuration cannot work. */
export function createMedia(config: MediaConfig, deps: StorageDeps): MediaStorage {
  if (config.provider === 's3') return createS3(config, deps);
  if (config.provider === 'azure') return createAzure(config, deps);
  return createCloudinary(config, deps);
}

export const MEDIA_URL_FORMS = [
  's3://ACCESS_KEY:SECRET@BUCKET?preset=aws&region=eu-west-1[&prefix=…]',
  's3://ACCESS_KEY:SECRET@HOST[:PORT]/BUCKET[?preset=minio][&region=…][&prefix=…][&pathStyle=false][&tls=false]',
  'azure://ACCOUNT:KEY@CONTAINER[?prefix=…][&endpoint=https://…]',
  'cloudinary://API_KEY:API_SECRET@CLOUD[?folder=…]',
];

/** Parses the operator's CHAT_MEDIA_URL. Errors never repeat the URL, because it contains secrets. */
export function mediaFromUrl(text: string): MediaConfig {
  const url = URL.parse(text);
  if (!url) throw fault('is not a URL (a "/", "+" or "=" in a secret is written %2F, %2B, %3D)');
  if (!['s3:', 'azure:', 'cloudinary:'].includes(url.protocol))
    throw fault(`has an unknown scheme ${url.protocol}//`);
  if (!url.username || !url.password) throw fault('needs KEY:SECRET@ (a "/" in a secret is written %2F)');
  if (!url.hostname) throw fault('names no bucket, container or cloud');
  const [user, secret] = [decode(url.username), decode(url.password)];
  try {
    const config =
      url.protocol === 's3:'
        ? s3(url, user, secret)
        : url.protocol === 'azure:'
          ? azure(url, user, secret)
          : cloudinary(url);
    createMedia(config, nothing);
    return config;
  } catch (error) {
    throw error instanceof TypeError && !error.message.startsWith('CHAT_MEDIA_URL')
      ? fault(`is wrong: ${error.message}`)
      : error;
  }
}

function s3(url: URL, accessKeyId: string, secretAccessKey: string): S3Config {
  const q = settings(url, ['preset', 'region', 'prefix', 'pathStyle', 'tls']);
  const path = url.pathname.replace(/^\/|\/$/g, '');
  if (path.includes('/')) throw fault('names more than one bucket: give folders as ?prefix=');
  const preset = q['preset'] as S3Preset | undefined;
  if (preset && !s3Presets.includes(preset))
    throw fault(`has an unknown preset: use one of ${s3Presets.join(', ')}`);
  const scheme = path && flag(q, 'tls') === false ? 'http' : 'https';
  const pathStyle = flag(q, 'pathStyle');
  return {
    provider: 's3',
    bucket: path || url.host,
    accessKeyId,
    secretAccessKey,
    ...filled(q, ['preset', 'region', 'prefix']),
    ...(path ? { endpoint: `${scheme}://${url.host}` } : {}),
    ...(pathStyle === undefined ? {} : { forcePathStyle: pathStyle }),
  };
}

function azure(url: URL, account: string, accountKey: string): AzureConfig {
  const q = settings(url, ['prefix', 'endpoint']);
  if (url.pathname.replace('/', '')) throw fault('names more than a container: give folders as ?prefix=');
  return { provider: 'azure', account, accountKey, container: url.host, ...filled(q) };
}

function cloudinary(url: URL): CloudinaryConfig {
  const q = settings(url, ['folder', 'endpoint', 'signatureAlgorithm']);
  if (!['sha1', 'sha256', undefined].includes(q['signatureAlgorithm']))
    throw fault('has signatureAlgorithm neither sha1 nor sha256');
  const cloudinaryUrl = `cloudinary://${url.username}:${url.password}@${url.host}`;
  return { provider: 'cloudinary', cloudinaryUrl, ...filled(q) };
}

const nothing: StorageDeps = {
  request: () => Promise.reject(new Error('not connected')),
  now: () => new Date(0),
};

const fault = (why: string) =>
  new TypeError(`CHAT_MEDIA_URL ${why}. Forms:\n  ${MEDIA_URL_FORMS.join('\n  ')}`);

function settings(url: URL, known: string[]): Record<string, string> {
  const unknown = [...url.searchParams.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) throw fault(`has an unknown setting "${unknown}" (known: ${known.join(', ')})`);
  return Object.fromEntries(url.searchParams);
}

/** The settings that are not empty. */
const filled = (q: Record<string, string>, names = Object.keys(q)): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (q[name] ? [[name, q[name]]] : [])));

function flag(q: Record<string, string>, name: string): boolean | undefined {
  const value = q[name];
  if (value === undefined || value === 'true' || value === 'false')
    return value === undefined ? value : value === 'true';
  throw fault(`has ${name} neither true nor false`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw fault('has a "%" in its credentials that is not written %25');
  }
}
