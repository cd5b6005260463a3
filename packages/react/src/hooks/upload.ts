import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Attachment, ParleyError } from '@parley/client';
import { useClient } from './context.ts';

export interface UploadItem {
  key: string;
  file: File;
  /** 0 to 1. */
  progress: number;
  status: 'uploading' | 'done' | 'failed';
  attachment: Attachment | null;
  error: ParleyError | null;
  /** An address of the picture in this page, for a preview. */
  preview: string | null;
}

export interface UploadView {
  items: readonly UploadItem[];
  /** Starts the uploads; returns how many files did not fit. */
  add(files: Iterable<File>): number;
  remove(key: string): void;
  retry(key: string): void;
  /** Forgets the uploads, which a message now carries. */
  clear(): void;
  /** Resolves when no upload is under way, to those that are there then. */
  settled(): Promise<readonly UploadItem[]>;
}

export const maxFiles = 10;
const pictures = /^image\/(png|jpe?g|gif|webp|avif)$/;
export const isPicture = (mimeType: string): boolean => pictures.test(mimeType);

/** The size of a picture, so that its place is kept while it loads; undefined if the browser cannot read it. */
async function sizeOf(file: File): Promise<{ width?: number; height?: number }> {
  if (!isPicture(file.type) || typeof createImageBitmap === 'undefined') return {};
  try {
    const picture = await createImageBitmap(file);
    const { width, height } = picture;
    picture.close();
    return { width, height };
  } catch {
    return {};
  }
}

/** Uploads for one message. They end when the component goes. */
export function useUpload(conversationId: string): UploadView {
  const client = useClient();
  const [items, setItems] = useState<readonly UploadItem[]>([]);
  const now = useRef<readonly UploadItem[]>(items);
  const running = useRef(new Map<string, { abort: AbortController; done: Promise<void> }>());
  const count = useRef(0);

  const set = useCallback((change: (items: readonly UploadItem[]) => readonly UploadItem[]) => {
    now.current = change(now.current);
    setItems(now.current);
  }, []);
  const patch = useCallback(
    (key: string, change: Partial<UploadItem>) =>
      set((all) => all.map((one) => (one.key === key ? { ...one, ...change } : one))),
    [set],
  );
  const start = useCallback(
    (key: string, file: File) => {
      const abort = new AbortController();
      const done = sizeOf(file)
        .then((size) =>
          client.uploads.upload(conversationId, file, {
            ...size,
            signal: abort.signal,
            onProgress: (progress) => patch(key, { progress }),
          }),
        )
        .then(
          (attachment) => patch(key, { status: 'done', progress: 1, attachment }),
          (error: unknown) => patch(key, { status: 'failed', error: error as ParleyError }),
        )
        .finally(() => running.current.delete(key));
      running.current.set(key, { abort, done });
    },
    [client, conversationId, patch],
  );
  const drop = useCallback((gone: readonly UploadItem[]) => {
    for (const { key, preview } of gone) {
      running.current.get(key)?.abort.abort();
      if (preview !== null) URL.revokeObjectURL(preview);
    }
  }, []);
  const remove = useCallback(
    (key: string) => {
      drop(now.current.filter((one) => one.key === key));
      set((all) => all.filter((one) => one.key !== key));
    },
    [drop, set],
  );
  const clear = useCallback(() => {
    drop(now.current);
    set(() => []);
  }, [drop, set]);
  const add = useCallback(
    (files: Iterable<File>) => {
      const all = [...files];
      const taken = all.slice(0, Math.max(0, maxFiles - now.current.length));
      const fresh = taken.map((file): UploadItem => {
        const preview = isPicture(file.type) ? URL.createObjectURL(file) : null;
        const key = `upload-${++count.current}`;
        return { key, file, progress: 0, status: 'uploading', attachment: null, error: null, preview };
      });
      set((before) => [...before, ...fresh]);
      for (const { key, file } of fresh) start(key, file);
      return all.length - taken.length;
    },
    [set, start],
  );
  const retry = useCallback(
    (key: string) => {
      const one = now.current.find((item) => item.key === key);
      if (!one || one.status !== 'failed') return;
      patch(key, { status: 'uploading', progress: 0, error: null });
      start(key, one.file);
    },
    [patch, start],
  );
  const settled = useCallback(async () => {
    await Promise.all([...running.current.values()].map(({ done }) => done));
    return now.current;
  }, []);
  // Also when the conversation changes: a file belongs to the one for which it was uploaded.
  useEffect(() => clear, [clear, conversationId]);
  return useMemo(
    () => ({ items, add, remove, retry, clear, settled }),
    [items, add, remove, retry, clear, settled],
  );
}
