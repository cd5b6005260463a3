import type { ConversationHandle, MessageItem } from '@parley/client';
import { byId } from './dom.ts';

/** The line at the bottom: sends, replies, edits, and says what went wrong. */
export class Composer {
  readonly #conversation: ConversationHandle;
  readonly #form = byId<HTMLFormElement>('composer');
  readonly #text = byId<HTMLTextAreaElement>('text');
  #reply: MessageItem | null = null;
  #editing: MessageItem | null = null;

  constructor(conversation: ConversationHandle) {
    this.#conversation = conversation;
    this.#text.value = '';
    this.#form.onsubmit = (event) => {
      event.preventDefault();
      void this.#submit();
    };
    this.#text.oninput = () => {
      if (this.#text.value.trim() && !this.#editing) conversation.startTyping();
    };
    this.#text.onblur = () => conversation.stopTyping();
    this.#text.onkeydown = (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#form.requestSubmit();
      } else if (event.key === 'Escape') this.#clear();
    };
    const file = byId<HTMLInputElement>('file');
    file.onchange = () => {
      const chosen = file.files?.[0];
      file.value = '';
      if (chosen) void this.#sendFile(chosen);
    };
    byId('context-cancel').onclick = () => this.#clear();
    this.#clear();
    if (matchMedia('(hover: hover)').matches) this.#text.focus();
  }

  replyTo(item: MessageItem): void {
    this.#clear();
    this.#reply = item;
    this.#context(`Reply to ${item.senderId ?? 'System'}: ${item.text ?? ''}`);
    this.#text.focus();
  }

  edit(item: MessageItem): void {
    this.#clear();
    this.#editing = item;
    this.#text.value = item.text ?? '';
    this.#context('Edit message');
    this.#text.focus();
  }

  say(problem: string): void {
    this.#context(problem);
  }

  close(): void {
    this.#conversation.stopTyping();
    this.#form.onsubmit = null;
  }

  #context(text: string): void {
    byId('context-text').textContent = text;
    byId('context').hidden = text === '';
  }

  #clear(): void {
    this.#reply = null;
    this.#editing = null;
    this.#context('');
  }

  async #sendFile(file: File): Promise<void> {
    const reply = this.#reply;
    try {
      const { id } = await this.#conversation.upload(file, {
        onProgress: (fraction) => this.say(`${file.name}: ${Math.round(100 * fraction)} %`),
      });
      this.#clear();
      this.#conversation.send({ attachments: [id], ...(reply?.id ? { replyTo: reply.id } : {}) });
    } catch (error) {
      this.say(`${file.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #submit(): Promise<void> {
    const text = this.#text.value.trim();
    if (!text) return;
    const editing = this.#editing;
    const reply = this.#reply;
    this.#text.value = '';
    this.#clear();
    if (!editing) {
      this.#conversation.send({ text, ...(reply?.id ? { replyTo: reply.id } : {}) });
      return;
    }
    try {
      await this.#conversation.edit(editing.id!, { text });
    } catch (error) {
      this.#text.value = text;
      this.say(error instanceof Error ? error.message : String(error));
    }
  }
}
