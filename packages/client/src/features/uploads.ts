import type { Clock } from '../clock.ts';
import { backoff } from '../connection/backoff.ts';
import { asError, ParleyError } from '../errors.ts';
import type { Http } from '../http.ts';
import type { Attachment } from '../types.ts';

export interface NewUpload {
  conversationId: string;
  filename: string;
  size: number;
  contentType: string;
  width?: number;
  height?: number;
  durationMs?: number;
  waveform?: string;
}
export interface UploadTicket {
  attachmentId: string;
  upload: {
    method: 'POST' | 'PUT';
    url: string;
    /** POST: form fields to send with the file. */
    fields?: Record<string, string>;
    /** PUT: headers to send. */
    headers?: Record<string, string>;
  };
  expiresAt: string;
}

export interface UploadOptions {
  /** Called with 0 to 1, if the platform reports progress (XMLHttpRequest); 1 when the attachment is ready. */
  onProgress?(fraction: number): void;
  /** Aborting rejects with `aborted` at once. */
  signal?: AbortSignal;
  /** The default is the file's own name. */
  filename?: string;
  width?: number;
  height?: number;
  /** Of a voice note: its length. */
  durationMs?: number;
  /** Of a voice note: base64 of up to 128 bytes, its loudness over its length. */
  waveform?: string;
}
/** A browser's File, or a Blob with a name. */
export type UploadFile = Blob & { name?: string };

export interface UploadParts {
  fetch: typeof fetch;
  clock: Clock;
  random(): number;
}

const maxTries = 3;

/** uploads#ticket. It is loaded with the first file. */
export const createUploads = (http: Http, parts: UploadParts) => {
  const uploads = {
    createUpload: (body: NewUpload) => http.call<UploadTicket>('POST', '/uploads', { body }),
    completeUpload: (attachmentId: string) =>
      http.call<Attachment>('POST', `/uploads/${encodeURIComponent(attachmentId)}/complete`),
    attachmentUrl: (attachmentId: string, expiresIn?: number) =>
      http.call<{ url: string; expiresAt: string }>(
        'GET',
        `/attachments/${encodeURIComponent(attachmentId)}/url`,
        { query: { expiresIn } },
      ),
    /**
     * Gets a ticket, transfers the file directly to the storage, and completes the upload. Put the attachment's id
     * into a draft.
     */
    upload: (conversationId: string, file: UploadFile, options: UploadOptions = {}): Promise<Attachment> =>
      new Promise((resolve, reject) => {
        const { signal } = options;
        const abort = () => reject(new ParleyError('aborted'));
        if (signal?.aborted) return abort();
        signal?.addEventListener('abort', abort);
        run(conversationId, file, options)
          .then(resolve, reject)
          .finally(() => signal?.removeEventListener('abort', abort));
      }),
  };

  async function run(conversationId: string, file: UploadFile, options: UploadOptions): Promise<Attachment> {
    const { onProgress, signal, filename = file.name || 'file', ...more } = options;
    const { attachmentId, upload } = await uploads.createUpload({
      conversationId,
      filename,
      size: file.size,
      contentType: file.type || 'application/octet-stream',
      ...more,
    });
    for (let tries = 1; ; tries++) {
      let status = 0;
      try {
        status = await transfer(upload, file, filename, options, parts.fetch);
      } catch {
        // The file may have arrived although the answer was lost: the completion shows it.
      }
      if (signal?.aborted) throw new ParleyError('aborted');
      try {
        if (status >= 400 && status < 500 && tries === 1)
          throw new ParleyError('upload_refused', `The storage answered ${status}.`);
        const attachment = await uploads.completeUpload(attachmentId);
        onProgress?.(1);
        return attachment;
      } catch (e) {
        const error = asError(e);
        if (error.code !== 'attachment_not_ready') throw error;
        if (tries >= maxTries)
          throw status ? error : new ParleyError('network', 'The storage cannot be reached.');
      }
      const wait = backoff(tries, parts.random);
      await new Promise<void>((resolve) => parts.clock.setTimeout(resolve, wait));
    }
  }

  return uploads;
};
export type Uploads = ReturnType<typeof createUploads>;

/** Resolves to the HTTP status of the storage; rejects if there is none. */
function transfer(
  { method, url, fields, headers = {} }: UploadTicket['upload'],
  file: UploadFile,
  filename: string,
  { onProgress, signal }: UploadOptions,
  fetcher: typeof fetch,
): Promise<number> {
  let body: Blob | FormData = file;
  if (method === 'POST') {
    body = new FormData();
    for (const name in fields) body.append(name, fields[name]!);
    body.append('file', file, filename);
  }
  if (typeof XMLHttpRequest === 'undefined')
    return fetcher(url, { method, headers, body, ...(signal ? { signal } : {}) }).then((r) => r.status);
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open(method, url);
    for (const name in headers) xhr.setRequestHeader(name, headers[name]!);
    if (onProgress)
      xhr.upload.onprogress = (e) => {
        if (e.lengthComputable && !signal?.aborted) onProgress(e.loaded / e.total);
      };
    xhr.onload = () => resolve(xhr.status);
    xhr.onerror = xhr.onabort = reject;
    signal?.addEventListener('abort', () => xhr.abort(), { once: true });
    xhr.send(body);
  });
}
