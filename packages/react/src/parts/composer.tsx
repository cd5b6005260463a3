import { forwardRef, useEffect, useRef, useState } from 'react';
import type {
  ChangeEvent,
  ClipboardEvent,
  ComponentPropsWithoutRef,
  CSSProperties,
  KeyboardEvent,
  ReactNode,
} from 'react';
import type { Draft, MessageItem } from '@parley/client';
import { useComposer } from '../hooks/composer.ts';
import { useParley } from '../hooks/context.ts';
import { useName } from '../hooks/people.ts';
import { useAnnouncement } from '../hooks/rules.ts';
import { maxFiles } from '../hooks/upload.ts';
import type { ChipProps } from './chips.tsx';
import { EmojiPicker } from './emoji-picker.tsx';
import { Icon } from './icon.tsx';
import { later } from './later.ts';
import type { SuggestionsProps, SuggestKeys, Trigger } from './suggestions.tsx';
import { cx } from './tools.ts';

const Chips = later(() => import('./chips.tsx'));
/** What is offered while one types loads with the first character. */
const Suggestions = later<SuggestionsProps>(() => import('./suggestions.tsx'));
const noTriggers: readonly Trigger[] = [];
/** A file that is on its way to a message. It loads with the first one. */
export const AttachmentChip = later<ChipProps>(async () => ({
  default: (await import('./chips.tsx')).AttachmentChip,
}));

export interface ComposerProps extends Omit<ComponentPropsWithoutRef<'form'>, 'onSubmit'> {
  conversationId: string;
  /** The recipient in the placeholder. */
  to: string;
  editing?: MessageItem | null;
  replyTo?: MessageItem | null;
  /** Ends the reply or the change. */
  onCancel?: (() => void) | undefined;
  /** Asks to change the last message: the arrow up in an empty field. */
  onEditLast?: () => void;
  /** Why nothing can be written. */
  readOnly?: string | null;
  submitOn?: 'enter' | 'mod-enter';
  /** The field grows up to so many rows. */
  maxRows?: number;
  /** Which files may be added, as in `accept` of a file input: `image/*,.pdf`. */
  accept?: string | undefined;
  onBeforeSend?: (draft: Draft) => Draft | null;
  /** Characters that offer something, besides `@` for mentions. Keep the list the same between renders. */
  triggers?: readonly Trigger[] | undefined;
  /** More buttons before the field. */
  tools?: ReactNode;
  /** Files that were dropped elsewhere; each list is taken once. */
  dropped?: readonly File[] | null;
}

/** The browser asks only in its dialog: what is dropped or pasted comes as it is. */
const accepts = (accept: string | undefined, { name, type }: File): boolean =>
  accept === undefined ||
  accept.split(',').some((one) => {
    const kind = one.trim().toLowerCase();
    return kind.startsWith('.')
      ? name.toLowerCase().endsWith(kind)
      : type === kind || (kind.endsWith('/*') && type.startsWith(kind.slice(0, -1)));
  });

/** From so few characters left on, the rest is shown. */
const warnAt = 200;

export const Composer = forwardRef<HTMLFormElement, ComposerProps>(function Composer(props, ref) {
  const { conversationId, to, editing = null, replyTo = null, onCancel, onEditLast, ...others } = props;
  const {
    readOnly: given = null,
    submitOn = 'enter',
    maxRows,
    accept,
    onBeforeSend,
    triggers = noTriggers,
    tools,
    dropped = null,
    className,
    ...rest
  } = others;
  const { strings, announcer } = useParley();
  const readOnly = useAnnouncement(conversationId) ? (given ?? strings.onlyModerators) : given;
  const composer = useComposer(conversationId, {
    editing,
    replyTo,
    onDone: onCancel,
    onBeforeSend,
  });
  const { text, setText, uploads, canSend, left, busy, error } = composer;
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [choosing, setChoosing] = useState(false);

  const add = (files: Iterable<File>): void => {
    const all = [...files];
    const fit = all.filter((file) => accepts(accept, file));
    if (fit.length < all.length) announcer.say(strings.notAccepted);
    if (uploads.add(fit) > 0) announcer.say(strings.tooManyFiles(maxFiles));
  };
  const adding = useRef(add);
  useEffect(() => void (adding.current = add));
  useEffect(() => {
    if (dropped) adding.current(dropped);
  }, [dropped]);
  // After the choice of a reply or an edit the focus goes to the field.
  const about = editing?.key ?? replyTo?.key ?? null;
  useEffect(() => {
    if (about !== null) field.current?.focus();
  }, [about]);

  const suggestKeys = useRef<SuggestKeys | null>(null);
  const [caret, setCaret] = useState(0);
  const close = (): void => {
    setChoosing(false);
    field.current?.focus();
  };
  const pick = (emoji: string): void => {
    const at = field.current?.selectionStart ?? text.length;
    setText(text.slice(0, at) + emoji + text.slice(field.current?.selectionEnd ?? at));
    close();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    // Enter ends a word of an input method; some browsers say so only by the code 229.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (suggestKeys.current?.(event)) return;
    const mod = event.ctrlKey || event.metaKey;
    // On a touch screen Enter breaks the line: there is a button to send.
    const touch = matchMedia('(pointer: coarse)').matches;
    const submits = submitOn === 'enter' ? !event.shiftKey && !touch : mod;
    if (event.key === 'Enter' && submits) void composer.send();
    else if (event.key === 'Escape' && (editing || replyTo)) onCancel?.();
    else if (event.key === 'ArrowUp' && text === '' && !editing && onEditLast) onEditLast();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onPaste = (event: ClipboardEvent): void => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };

  if (readOnly !== null)
    return (
      <form ref={ref} className={cx('parley-composer', className)} data-read-only="" {...rest}>
        <p>{readOnly}</p>
      </form>
    );
  const placeholder = strings.write(to);
  return (
    <form
      ref={ref}
      className={cx('parley-composer', className)}
      {...rest}
      onSubmit={(event) => {
        event.preventDefault();
        void composer.send();
      }}
    >
      {editing || replyTo ? <Context editing={editing} replyTo={replyTo} onCancel={onCancel} /> : null}
      {uploads.items.length > 0 && !editing ? <Chips uploads={uploads} /> : null}
      {error ? (
        <p className="parley-problem" role="alert">
          {error.code === 'version_conflict' ? strings.editConflict : error.message}
        </p>
      ) : null}
      <div className="parley-row">
        {editing ? null : (
          <>
            <button
              type="button"
              className="parley-button"
              aria-label={strings.attach}
              title={strings.attach}
              onClick={() => picker.current?.click()}
            >
              <Icon name="attach" />
            </button>
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              accept={accept}
              aria-label={strings.attach}
              onChange={(event: ChangeEvent<HTMLInputElement>) => {
                add(event.target.files ?? []);
                event.target.value = '';
              }}
            />
            {tools}
          </>
        )}
        <div className="parley-text" data-value={text} style={{ '--parley-rows': maxRows } as CSSProperties}>
          {text ? (
            <Suggestions
              {...{ conversationId, composer, field, caret, setCaret, triggers }}
              keys={suggestKeys}
            />
          ) : null}
          <textarea
            ref={field}
            rows={1}
            dir="auto"
            value={text}
            readOnly={busy}
            placeholder={placeholder}
            aria-label={editing ? strings.editing : placeholder}
            aria-invalid={left < 0}
            onChange={(event) => setText(event.target.value)}
            onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
            onBlur={composer.blur}
          />
        </div>
        {left < warnAt ? (
          <span className="parley-left" role="status" aria-label={strings.charactersLeft(left)}>
            {left}
          </span>
        ) : null}
        <span className="parley-emoji-place">
          <button
            type="button"
            className="parley-button"
            aria-label={strings.emoji}
            title={strings.emoji}
            aria-haspopup="dialog"
            aria-expanded={choosing}
            onClick={() => setChoosing(!choosing)}
          >
            <Icon name="emoji" />
          </button>
          {choosing ? <EmojiPicker onPick={pick} onClose={close} /> : null}
        </span>
        <button
          type="submit"
          className="parley-send"
          aria-label={editing ? strings.save : strings.send}
          data-quiet={!canSend || undefined}
        >
          <Icon name={editing ? 'check' : 'send'} />
        </button>
      </div>
    </form>
  );
});

type ContextProps = Pick<ComposerProps, 'editing' | 'replyTo' | 'onCancel'>;
function Context({ editing, replyTo, onCancel }: ContextProps) {
  const { strings, client } = useParley();
  const name = useName(replyTo?.senderId);
  const author = replyTo?.senderId != null && replyTo.senderId === client.userId ? strings.you : name;
  return (
    <div className="parley-context">
      <Icon name={editing ? 'edit' : 'reply'} size={15} />
      <span>
        <b>{editing ? strings.editing : strings.replyingTo(author)}</b>{' '}
        <span dir="auto">{(editing ?? replyTo)?.text}</span>
      </span>
      <button type="button" className="parley-button" aria-label={strings.cancel} onClick={onCancel}>
        <Icon name="close" size={14} />
      </button>
    </div>
  );
}
