import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Client, Draft, Mention, MessageItem, ParleyError } from '@parley/client';
import { useClient } from './context.ts';
import { useConversation } from './open.ts';
import { choose, chosenOf, placed } from './suggestions.ts';
import type { Chosen } from './suggestions.ts';
import { useUpload } from './upload.ts';
import type { UploadView } from './upload.ts';

const maxDrafts = 200;
export const maxText = 5_000;
const drafts = new WeakMap<Client, Map<string, string>>();

const draftsOf = (client: Client): Map<string, string> => {
  let all = drafts.get(client);
  if (!all) drafts.set(client, (all = new Map()));
  return all;
};

/** What was typed in a conversation and not sent, as long as the page lives. */
export function keepDraft(client: Client, id: string, text: string): void {
  const all = draftsOf(client);
  all.delete(id);
  if (text !== '') all.set(id, text);
  if (all.size > maxDrafts) all.delete(all.keys().next().value!);
}
export const draftOf = (client: Client, id: string): string => draftsOf(client).get(id) ?? '';

export interface ComposerOptions {
  /** The message that is being changed. */
  editing?: MessageItem | null;
  /** The message that is answered. */
  replyTo?: MessageItem | null;
  /** Called when the message is on its way, or the change is made. */
  onDone?(): void;
  /** Changes the draft before it is sent; null holds it back. */
  onBeforeSend?(draft: Draft): Draft | null;
}

export interface ComposerView {
  text: string;
  /** Changes the text and notifies the others that this user types. */
  setText(text: string): void;
  /** Notes that `shown` in the text stands for this mention; it counts as long as the text has it. */
  mention(mention: Mention, shown: string): void;
  uploads: UploadView;
  /** The text or a file is there, and the text is not too long. */
  canSend: boolean;
  /** How many characters are left; negative if there are too many. */
  left: number;
  /** True while a message waits for its files, or a change for its answer. */
  busy: boolean;
  error: ParleyError | null;
  send(): Promise<void>;
  /** To be called when the field loses the focus. */
  blur(): void;
}

const nobody: { key: string; chosen: Chosen } = { key: '', chosen: new Map() };

/** The text, files and the sending of one message: a new one, an answer, or a change. */
export function useComposer(id: string, options: ComposerOptions = {}): ComposerView {
  const { editing = null, replyTo = null } = options;
  const client = useClient();
  const conversation = useConversation(id);
  const uploads = useUpload(id);
  const [draft, setDraft] = useState({ id, text: draftOf(client, id) });
  const [changed, setChanged] = useState<{ key: string; text: string } | null>(null);
  const [picked, setPicked] = useState<{ key: string; chosen: Chosen }>(nobody);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ParleyError | null>(null);
  const latest = useRef(options);
  useEffect(() => void (latest.current = options));

  const text = editing
    ? changed?.key === editing.key
      ? changed.text
      : (editing.text ?? '')
    : draft.id === id
      ? draft.text
      : draftOf(client, id);
  const about = editing?.key ?? id;
  const chosen = useMemo(
    () => (picked.key === about ? picked.chosen : editing ? chosenOf(editing) : nobody.chosen),
    [picked, about, editing],
  );
  const left = maxText - [...text].length;
  const files = uploads.items.filter(({ status }) => status !== 'failed').length;
  const canSend = !busy && left >= 0 && (text.trim() !== '' || (!editing && files > 0));

  const put = useCallback(
    (next: string) => {
      keepDraft(client, id, next);
      setDraft({ id, text: next });
    },
    [client, id],
  );
  const setText = useCallback(
    (next: string) => {
      setError(null);
      if (editing) return setChanged({ key: editing.key, text: next });
      put(next);
      if (next.trim() === '') conversation?.stopTyping();
      else conversation?.startTyping();
    },
    [editing, put, conversation],
  );
  const mention = useCallback(
    (one: Mention, shown: string) => setPicked({ key: about, chosen: choose(chosen, one, shown) }),
    [about, chosen],
  );
  const blur = useCallback(() => conversation?.stopTyping(), [conversation]);

  const send = useCallback(async () => {
    if (!canSend || !conversation) return;
    const { onDone, onBeforeSend = (same: Draft) => same } = latest.current;
    try {
      if (editing?.id) {
        setBusy(true);
        const mentions = chosen.size > 0 ? { mentions: placed(text, chosen) } : {};
        if (text !== editing.text) await conversation.edit(editing.id, { text, ...mentions });
      } else {
        // Without files nothing is awaited: a second Enter must not find the text still there.
        if (files > 0) setBusy(true);
        const ready = files > 0 ? await uploads.settled() : [];
        const attachments = ready.flatMap((one) => (one.attachment ? [one.attachment.id] : []));
        // A file failed, or went with its conversation: the message waits for its author.
        if (attachments.length < files) return;
        const mentions = placed(text, chosen);
        const made = onBeforeSend({
          ...(text.trim() === '' ? {} : { text }),
          ...(replyTo?.id ? { replyTo: replyTo.id } : {}),
          ...(attachments.length > 0 ? { attachments } : {}),
          ...(mentions.length > 0 ? { mentions } : {}),
        });
        if (made && (made.text || made.attachments?.length)) {
          client.conversations.send(id, made);
          put('');
          setPicked(nobody);
          uploads.clear();
        }
      }
      onDone?.();
    } catch (e) {
      setError(e as ParleyError);
    } finally {
      setBusy(false);
    }
  }, [canSend, conversation, editing, text, chosen, files, uploads, replyTo, client, id, put]);

  return useMemo(
    () => ({ text, setText, mention, uploads, canSend, left, busy, error, send, blur }),
    [text, setText, mention, uploads, canSend, left, busy, error, send, blur],
  );
}
