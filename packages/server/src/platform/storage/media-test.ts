import type { MediaTest } from '@parley/protocol';
import type { Outbound } from '../outbound/outbound.ts';
import { StorageUnavailable } from './port.ts';
import type { MediaStorage } from './port.ts';

/**
 * Tests a media storage the way clients and this service will use it: upload, read, delete, and the CORS requests of
 * browsers.
 */

const body = Buffer.from('A test of Parley: this object can be removed.');
const ticketMs = 60_000;

class Failed extends Error {}

export async function testMedia(
  storage: MediaStorage,
  request: Outbound['request'],
  options: { key: string; now: number; origin?: string },
): Promise<Pick<MediaTest, 'ok' | 'error' | 'checks'>> {
  const { key, origin } = options;
  const checks: MediaTest['checks'] = [];
  async function check(name: MediaTest['checks'][number]['name'], work: () => Promise<void>): Promise<void> {
    try {
      await work();
      checks.push({ name, ok: true });
    } catch (error) {
      if (!(error instanceof Failed) && !(error instanceof StorageUnavailable) && !isNetwork(error))
        throw error;
      // URLs are left out of the result, because they are signed.
      checks.push({
        name,
        ok: false,
        detail: error.message.replace(/https?:\/\/\S+/g, '(URL)').slice(0, 300),
      });
    }
  }
  let url = '';
  await check('upload', async () => {
    const expiresAt = new Date(options.now + ticketMs);
    const ticket = await storage.ticket({
      key,
      contentType: 'text/plain',
      size: body.length,
      filename: 'test.txt',
      resource: 'raw',
      expiresAt,
    });
    url = ticket.url;
    const { status } = await request(
      ticket.method === 'PUT'
        ? { url, method: 'PUT', headers: ticket.headers ?? {}, body }
        : form(url, ticket.fields ?? {}),
    );
    if (status < 200 || status > 299) throw new Failed(`The storage answered ${status} to an upload.`);
  });
  if (checks[0]!.ok) {
    await check('read', async () => {
      const found = await storage.inspect(key, 'raw');
      if (found?.size !== body.length) throw new Failed('What was uploaded could not be read.');
    });
    await check('delete', async () => {
      await storage.remove(key, 'raw');
      if ((await storage.inspect(key, 'raw')) !== null) throw new Failed('What was deleted is still there.');
    });
    if (origin !== undefined)
      await check('cors', async () => {
        const method = storage.provider === 'cloudinary' ? 'POST' : 'PUT';
        const headers = {
          origin,
          'access-control-request-method': method,
          'access-control-request-headers': 'content-type',
        };
        const answer = await request({ url, method: 'OPTIONS', headers });
        const allowed = answer.headers['access-control-allow-origin'];
        if (allowed !== '*' && allowed !== origin)
          throw new Failed(`Browsers at ${origin} may not upload: its CORS rules do not allow it.`);
      });
  }
  const failed = checks.find((c) => !c.ok);
  return { ok: !failed, error: failed?.detail ?? null, checks };
}

const isNetwork = (error: unknown): error is Error =>
  error instanceof Error &&
  (error.name.startsWith('Outbound') || typeof (error as { code?: unknown }).code === 'string');

function form(url: string, fields: Record<string, string>): Parameters<Outbound['request']>[0] {
  const boundary = 'parley-test-boundary-7d1f3c';
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const file = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="test.txt"\r\ncontent-type: text/plain\r\n\r\n`;
  return {
    url,
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: Buffer.concat([Buffer.from(parts.join('') + file), body, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  };
}
