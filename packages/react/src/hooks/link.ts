import { useCallback, useEffect, useRef, useState } from 'react';
import type { Client } from '@parley/client';
import { useClient } from './context.ts';

interface Link {
  url: string;
  expiresAt: number;
}
const links = new WeakMap<Client, Map<string, Promise<Link>>>();
const maxLinks = 500;
/** A link is replaced before it expires: by so much. */
const earlyMs = 30_000;

export function linkOf(client: Client, id: string, afresh: boolean): Promise<Link> {
  let all = links.get(client);
  if (!all) links.set(client, (all = new Map()));
  const held = all.get(id);
  if (held && !afresh) return held;
  const asked = client.uploads
    .attachmentUrl(id)
    .then(({ url, expiresAt }) => ({ url, expiresAt: Date.parse(expiresAt) }));
  all.set(id, asked);
  asked.catch(() => all.delete(id));
  if (all.size > maxLinks) all.delete(all.keys().next().value!);
  return asked;
}

export interface LinkView {
  /** Null until it is there. */
  url: string | null;
  gone: boolean;
  /** For `onError` of the element that shows the file: once for each link, then the file is gone. */
  renew(): void;
}

/**
 * An address of a file, renewed for as long as somebody looks.
 * @param keep the address changes only when it fails: a film that plays must not start over.
 */
export function useLink(id: string, keep = false): LinkView {
  const client = useClient();
  const [url, setUrl] = useState<string | null>(null);
  const [gone, setGone] = useState(false);
  const [round, setRound] = useState(0);
  const failed = useRef<string | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const look = async (afresh: boolean): Promise<void> => {
      try {
        const link = await linkOf(client, id, afresh);
        if (over) return;
        const left = link.expiresAt - Date.now() - earlyMs;
        if (left <= 0 && !afresh) return await look(true);
        setUrl(link.url);
        const wait = Math.min(Math.max(left, earlyMs), 2 ** 31 - 1);
        if (!keep) timer = setTimeout(() => void look(true), wait);
      } catch {
        if (!over) setGone(true);
      }
    };
    void look(round > 0);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [client, id, round, keep]);
  const renew = useCallback(() => {
    // A file that does not load with a new link either is not there; one that has played until its link expired is.
    const fresh = failed.current !== null && !(keep && failed.current !== url);
    failed.current = url;
    if (fresh) setGone(true);
    else setRound((n) => n + 1);
  }, [keep, url]);
  return { url, gone, renew };
}
