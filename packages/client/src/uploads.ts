import type { Http } from './http.ts';
import type { Attachment } from './types.ts';

export interface NewUpload {
  conversationId: string;
  filename: string;
  size: number;
  contentType: string;
  width?: number;
  height?: number;
}
export interface UploadTicket {
  attachmentId: string;
  upload: {
    method: 'POST' | 'PUT';
    url: string;
    /** POST: form fields to send with the file. */
    fields?: Record<string, string>;
    /** PUT. */
    headers?: Record<string, string>;
  };
  expiresAt: string;
}

/** SPEC 4, uploads and attachments. */
export const createUploads = (http: Http) => ({
  createUpload: (body: NewUpload) => http.call<UploadTicket>('POST', '/uploads', { body }),
  completeUpload: (attachmentId: string) =>
    http.call<Attachment>('POST', `/uploads/${encodeURIComponent(attachmentId)}/complete`),
  attachmentUrl: (attachmentId: string, expiresIn?: number) =>
    http.call<{ url: string; expiresAt: string }>(
      'GET',
      `/attachments/${encodeURIComponent(attachmentId)}/url`,
      { query: { expiresIn } },
    ),
});
export type Uploads = ReturnType<typeof createUploads>;
