import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { resourceOf } from '../../src/features/uploads/content/allowed.ts';
import { verify } from '../../src/features/uploads/content/verify.ts';
import { HEAD_BYTES, StorageUnavailable } from '../../src/platform/storage/port.ts';
import type { MediaStorage, Ticket } from '../../src/platform/storage/port.ts';

/** A provider that runs, and what it checks by itself when a file is uploaded. */
export interface Harness {
  storage: MediaStorage;
  /** The same storage seen by a server whose clock shows another time. */
  at(now: Date): MediaStorage;
  unreachable: MediaStorage;
  /** The same provider with a credential that it does not accept; none where the adapter is its own provider. */
  stranger?: MediaStorage;
  /** What the provider refuses; completion must find the rest. */
  refuses: { type: boolean; size: boolean; overwrite: boolean; content: boolean };
  /** Downloads carry the file name and type that were signed, not the provider's own. */
  namesDownloads: boolean;
  stop(): Promise<void>;
}

export const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAcAAAAFCAIAAAAG+GGPAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAEUlEQVQImWMQMgnDRAw0EgUAjGoVVRkmZowAAAAASUVORK5CYII=',
  'base64',
);
const pdf = Buffer.from(
  '%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n',
);
const program = Buffer.concat([Buffer.from('MZ\x90\0\x03\0\0\0', 'latin1'), Buffer.alloc(200, 7)]);

interface File {
  key: string;
  contentType: string;
  filename: string;
  body: Buffer;
}
const minutes = (n: number) => new Date(Date.now() + n * 60_000);

const ticketFor = (storage: MediaStorage, file: File, expiresAt = minutes(10)): Promise<Ticket> =>
  storage.ticket({ ...file, size: file.body.length, resource: resourceOf(file.contentType), expiresAt });

/** What a page does with a ticket: a form with every field and then the file, or a PUT with the given headers. */
export function upload(
  ticket: Ticket,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<Response> {
  const file = new File([new Uint8Array(body)], 'file', { type: 'application/octet-stream' });
  if (ticket.method === 'PUT') {
    return fetch(ticket.url, { method: 'PUT', headers: { ...ticket.headers, ...headers }, body: file });
  }
  const form = new FormData();
  for (const [name, value] of Object.entries(ticket.fields ?? {})) form.append(name, value);
  form.append('file', file);
  return fetch(ticket.url, { method: 'POST', body: form });
}

/** Every adapter passes this against a server that checks what its provider checks; `own` adds its own tests. */
export function storageSuite(name: string, start: () => Promise<Harness>, own?: () => void): void {
  describe(`media storage: ${name}`, () => {
    let h: Harness;
    before(async () => {
      h = await start();
    });
    after(() => h?.stop());
    own?.();

    let serial = 0;
    const make = (contentType: string, filename: string, body: Buffer): File => {
      serial += 1;
      return { key: `env_test/att_${String(serial).padStart(4, '0')}`, contentType, filename, body };
    };
    const inspect = (file: File) => h.storage.inspect(file.key, resourceOf(file.contentType));
    const put = async (file: File) => {
      const answer = await upload(await ticketFor(h.storage, file), file.body);
      assert.ok(answer.ok, `${answer.status} ${await answer.text()}`);
      return file;
    };
    const urlOf = (file: File, storage = h.storage) =>
      storage.downloadUrl({
        ...file,
        resource: resourceOf(file.contentType),
        disposition: file.contentType.startsWith('image/') ? 'inline' : 'attachment',
        expiresIn: 300,
      });

    test('uploads#complete: an upload that has not happened is not there, and may be removed', async () => {
      const file = make('image/png', 'cat.png', png);
      await ticketFor(h.storage, file);
      assert.equal(await inspect(file), null);
      await h.storage.remove(file.key, 'image');
    });

    test('uploads#ticket: an image is uploaded, found, measured, and shown inline', async () => {
      const file = await put(make('image/png', 'cat.png', png));
      const found = await inspect(file);
      assert.ok(found);
      assert.equal(found.size, png.length);
      assert.deepEqual(Buffer.from(found.head), png);
      assert.deepEqual(verify(file.contentType, file.filename, png.length, found), {
        ok: true,
        mimeType: 'image/png',
        width: 7,
        height: 5,
      });
      const answer = await fetch(await urlOf(file));
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('content-type'), 'image/png');
      assert.doesNotMatch(answer.headers.get('content-disposition') ?? '', /attachment/);
      assert.deepEqual(Buffer.from(await answer.arrayBuffer()), png);
    });

    test('uploads#download: a PDF is served as an attachment with its name', async () => {
      const file = await put(make('application/pdf', 'Müllers "Rechnung" (1).pdf', pdf));
      const found = await inspect(file);
      assert.ok(found);
      assert.equal(verify(file.contentType, file.filename, pdf.length, found).ok, true);
      const answer = await fetch(await urlOf(file));
      const disposition = answer.headers.get('content-disposition') ?? '';
      assert.match(disposition, /^attachment/);
      assert.deepEqual(Buffer.from(await answer.arrayBuffer()), pdf);
      if (!h.namesDownloads) return;
      assert.equal(answer.headers.get('content-type'), 'application/pdf');
      assert.match(disposition, /filename\*=UTF-8''M%C3%BCllers%20%22Rechnung%22%20%281%29\.pdf/);
    });

    test('a disguised executable does not become an attachment', async () => {
      for (const [contentType, filename] of [
        ['image/png', 'cat.png'],
        ['application/pdf', 'bill.pdf'],
      ] as const) {
        const file = make(contentType, filename, program);
        const answer = await upload(await ticketFor(h.storage, file), program);
        const found = await inspect(file);
        if (contentType === 'image/png' && h.refuses.content) {
          assert.equal(answer.status, 400);
          assert.equal(found, null);
        } else {
          assert.ok(answer.ok && found);
          assert.equal(verify(contentType, filename, program.length, found).ok, false);
        }
      }
    });

    test('uploads#complete: another size than announced is refused, or found at completion', async () => {
      for (const body of [Buffer.concat([pdf, pdf]), pdf.subarray(0, 20)]) {
        const file = make('application/pdf', 'bill.pdf', pdf);
        const answer = await upload(await ticketFor(h.storage, file), body);
        const found = await inspect(file);
        if (h.refuses.size) {
          assert.ok(answer.status >= 400 && answer.status < 500, String(answer.status));
          assert.equal(found, null);
        } else {
          assert.equal(found?.size, body.length);
          assert.equal(verify(file.contentType, file.filename, pdf.length, found).ok, false);
        }
      }
    });

    test('uploads#complete: another content type than announced is refused, or has no effect on downloads', async () => {
      const file = make('application/pdf', 'bill.pdf', pdf);
      const answer = await upload(await ticketFor(h.storage, file), pdf, { 'content-type': 'text/html' });
      if (h.refuses.type) {
        assert.ok(answer.status >= 400 && answer.status < 500, String(answer.status));
        assert.equal(await inspect(file), null);
      } else {
        const served = await fetch(await urlOf(file));
        assert.doesNotMatch(served.headers.get('content-type') ?? '', /html/);
        assert.match(served.headers.get('content-disposition') ?? '', /^attachment/);
        await served.arrayBuffer();
      }
    });

    test('a ticket holds for its own object only', async () => {
      const [file, other] = [make('image/png', 'a.png', png), make('image/png', 'b.png', png)];
      const ticket = await ticketFor(h.storage, file);
      const swap = (text: string) => text.replace(file.key, other.key);
      const fields = Object.fromEntries(Object.entries(ticket.fields ?? {}).map(([k, v]) => [k, swap(v)]));
      const answer = await upload({ ...ticket, url: swap(ticket.url), fields }, png);
      assert.ok(answer.status >= 400 && answer.status < 500, String(answer.status));
      assert.equal(await inspect(other), null);
      assert.equal(await inspect(file), null);
    });

    test('uploads#ticket: a ticket is refused when its time is over', async () => {
      const file = make('image/png', 'late.png', png);
      const ticket = await ticketFor(h.at(minutes(-11)), file, minutes(-1));
      const answer = await upload(ticket, png);
      assert.ok(answer.status >= 400 && answer.status < 500, String(answer.status));
      assert.equal(await inspect(file), null);
    });

    test('a download URL is refused when its time is over, and holds for its own object only', async () => {
      const [file, other] = [
        await put(make('image/png', 'a.png', png)),
        await put(make('image/png', 'b.png', png)),
      ];
      const late = await fetch(await urlOf(file, h.at(minutes(-6))));
      assert.ok(late.status >= 400 && late.status < 500, String(late.status));
      const url = await urlOf(file);
      for (const key of [file.key, encodeURIComponent(file.key)]) {
        const replaced = url.replace(key, key === file.key ? other.key : encodeURIComponent(other.key));
        if (replaced === url) continue;
        const answer = await fetch(replaced);
        assert.ok(answer.status >= 400 && answer.status < 500, String(answer.status));
      }
    });

    test('a second upload with the same ticket replaces nothing, or is still served as announced', async () => {
      const file = make('application/pdf', 'bill.pdf', pdf);
      const ticket = await ticketFor(h.storage, file);
      assert.ok((await upload(ticket, pdf)).ok);
      const swapped = Buffer.from(pdf).fill('<', 0, 1);
      await upload(ticket, swapped);
      const served = await fetch(await urlOf(file));
      assert.match(served.headers.get('content-disposition') ?? '', /^attachment/);
      const body = Buffer.from(await served.arrayBuffer());
      assert.deepEqual(body, h.refuses.overwrite ? pdf : swapped);
    });

    test('inspection reads the first bytes of a large object, a download a range of it', async () => {
      const body = Buffer.alloc(300_000, 'abcdefghij');
      const file = await put(make('text/plain', 'long.txt', body));
      const found = await inspect(file);
      assert.equal(found?.size, body.length);
      assert.deepEqual(Buffer.from(found.head), body.subarray(0, HEAD_BYTES));
      const part = await fetch(await urlOf(file), { headers: { range: 'bytes=100003-100006' } });
      assert.equal(part.status, 206);
      assert.equal(part.headers.get('content-range'), `bytes 100003-100006/${body.length}`);
      assert.equal(await part.text(), 'defg');
    });

    test('a removed object is gone, and may be removed again', async () => {
      const file = await put(make('image/png', 'cat.png', png));
      await h.storage.remove(file.key, 'image');
      assert.equal(await inspect(file), null);
      assert.equal((await fetch(await urlOf(file))).status, 404);
      await h.storage.remove(file.key, 'image');
    });

    test('uploads#storage-unavailable: a provider that cannot be reached, or does not know us, says so', async () => {
      for (const storage of [h.unreachable, h.stranger]) {
        if (!storage) continue;
        await assert.rejects(storage.inspect('env_test/att_x', 'image'), StorageUnavailable);
        await assert.rejects(storage.remove('env_test/att_x', 'image'), StorageUnavailable);
      }
    });

    test('keys that could leave their place are refused', async () => {
      for (const key of ['../x', 'a/../b', '/a', 'a//b', 'a/.hidden', '', 'a?b', 'a b', 'a%2fb']) {
        await assert.rejects(async () => h.storage.inspect(key, 'raw'), TypeError, key);
      }
    });
  });
}
