import { createHmac } from 'node:crypto';
import { contentDisposition, keysBelow } from './port.ts';
import type { MediaStorage, StorageDeps } from './port.ts';
import { call, readHead, unexpected } from './remote.ts';

/** storage#media, shape (c). */
export interface AzureConfig {
  provider: 'azure';
  account: string;
  accountKey: string;
  container: string;
  prefix?: string;
  /** Default https://{account}.blob.core.windows.net. The endpoint of an emulator has the account as its path. */
  endpoint?: string;
}

const VERSION = '2021-12-02';

/**
 * Azure Blob Storage with service SAS. A SAS fixes the blob, the permission and the time, but neither length nor
 * type: an upload of another size succeeds, and completion detects it by `inspect`. The permission is "create", so a
 * ticket cannot replace an existing blob.
 */
export function createAzure(config: AzureConfig, deps: StorageDeps): MediaStorage {
  const endpoint = URL.parse(config.endpoint ?? `https://${config.account}.blob.core.windows.net`);
  if (!endpoint || !/^https?:$/.test(endpoint.protocol) || endpoint.username || endpoint.search) {
    throw new TypeError('endpoint must be an http(s) URL without credentials or query');
  }
  if (!/^[a-z0-9]{3,24}$/.test(config.account)) throw new TypeError('not an account name');
  if (!/^[a-z0-9](-?[a-z0-9]){2,62}$/.test(config.container)) throw new TypeError('not a container name');
  const accountKey = Buffer.from(config.accountKey, 'base64');
  if (accountKey.length === 0) throw new TypeError('the account key must be base64');
  const place = keysBelow(config.prefix);
  const root = endpoint.href.replace(/\/+$/, '');
  const protocol = endpoint.protocol === 'http:' ? 'https,http' : 'https';

  function sign(
    key: string,
    permission: 'c' | 'r' | 'd',
    expiresAt: Date,
    response: { type?: string; disposition?: string } = {},
  ) {
    const blob = place(key);
    const expiry = `${expiresAt.toISOString().slice(0, 19)}Z`;
    const { type = '', disposition = '' } = response;
    // Field order of version 2020-12-06 and later (Azure, "Create a service SAS"): permissions, start, expiry, resource,
    // identifier, IP, protocol, version, kind, snapshot, encryption scope, rscc, rscd, rsce, rscl, rsct.
    const resource = `/blob/${config.account}/${config.container}/${blob}`;
    const text = [
      permission,
      '',
      expiry,
      resource,
      '',
      '',
      protocol,
      VERSION,
      'b',
      '',
      '',
      '',
      disposition,
      '',
      '',
      type,
    ].join('\n');
    const query = new URLSearchParams({ sv: VERSION, sr: 'b', sp: permission, se: expiry, spr: protocol });
    if (disposition) query.set('rscd', disposition);
    if (type) query.set('rsct', type);
    query.set('sig', createHmac('sha256', accountKey).update(text).digest('base64'));
    return `${root}/${config.container}/${blob}?${query}`;
  }

  const inSeconds = (seconds: number) => new Date(deps.now().getTime() + seconds * 1000);

  return {
    provider: 'azure',
    async ticket(o) {
      return {
        method: 'PUT',
        url: sign(o.key, 'c', o.expiresAt),
        headers: { 'content-type': o.contentType, 'x-ms-blob-type': 'BlockBlob' },
      };
    },
    async inspect(key) {
      const head = await readHead(deps, 'azure', sign(key, 'r', inSeconds(60)));
      if ('found' in head) return head.found;
      const { status, headers } = head.answer;
      if (status === 404 && headers['x-ms-error-code'] === 'BlobNotFound') return null;
      throw unexpected('azure', 'reading', status);
    },
    async downloadUrl(o) {
      return sign(o.key, 'r', inSeconds(o.expiresIn), {
        type: o.contentType,
        disposition: contentDisposition(o.disposition, o.filename),
      });
    },
    async remove(key) {
      const url = sign(key, 'd', inSeconds(60));
      const { status } = await call(deps, 'azure', { url, method: 'DELETE' });
      if (status !== 202 && status !== 404) throw unexpected('azure', 'removing', status);
    },
  };
}
