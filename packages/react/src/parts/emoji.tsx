import { useEffect, useRef, useState } from 'react';
import type { KeyboardEvent } from 'react';
import { useStrings } from '../hooks/context.ts';
import { groups } from './emoji-data.ts';
import type { Emoji } from './emoji-data.ts';
import { Icon } from './icon.tsx';
import { moveFocus } from './tools.ts';

export interface EmojiPickerProps {
  onPick: (emoji: string) => void;
  onClose: () => void;
}

const columns = 8;
/** Rows that PageUp and PageDown move by. */
const pageRows = 4;
const maxRecent = 2 * columns;

/** What this browser remembers. Pages without a storage remember nothing. */
function read(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null');
  } catch {
    return null;
  }
}
function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // As above.
  }
}

const recentKey = 'parley-emoji';
/** What was picked, newest first. */
function recent(): string[] {
  const kept = read(recentKey);
  return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string').slice(0, maxRecent) : [];
}

const toneKey = 'parley-emoji-tone';
/** None, and the five that Unicode has, the lightest first. */
const tones = ['', '\u{1F3FB}', '\u{1F3FC}', '\u{1F3FD}', '\u{1F3FE}', '\u{1F3FF}'];
const hand = '✋';
const anyTone = /\p{Emoji_Modifier}/gu;

/** The emoji in a skin tone, if it shows skin. A tone stands in the place of the sign that asks for colours. */
const toned = (emoji: string, tone: number): string =>
  tones[tone] ? emoji.replace(/^(\p{Emoji_Modifier_Base})\uFE0F?/u, `$1${tones[tone]}`) : emoji;

const inRows = (all: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(all.length / columns) }, (_, i) =>
    all.slice(i * columns, (i + 1) * columns),
  );

/** Emoji in a grid: arrows move in two directions, letters search. Below it one chooses the tone of skin. */
export function EmojiPicker({ onPick, onClose }: EmojiPickerProps) {
  const strings = useStrings();
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useState('');
  const [kept] = useState(recent);
  const [tone, setTone] = useState(() => Math.max(0, tones.indexOf(read(toneKey) as string)));
  /** The cell that has the tab stop, as row and column, and the column that the arrows up and down keep to. */
  const [at, setAt] = useState({ row: 0, column: 0 });
  useEffect(() => box.current?.querySelector<HTMLElement>('[role=gridcell] > button')?.focus(), []);

  const terms = query.replace(anyTone, '').toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const found = ({ emoji, words }: Emoji): boolean => {
    const more = strings.emojiWords[emoji]?.toLocaleLowerCase().split(/\s+/) ?? [];
    return terms.every((term) => emoji === term || [...words, ...more].some((word) => word.startsWith(term)));
  };
  const named = groups.map((group, i) => ({
    label: strings.emojiGroups[i] ?? '',
    rows: inRows(group.map(({ emoji }) => toned(emoji, tone))),
  }));
  const shown =
    terms.length > 0
      ? [
          {
            label: strings.emojiSearch,
            rows: inRows(
              groups
                .flat()
                .filter(found)
                .map((one) => toned(one.emoji, tone)),
            ),
          },
        ]
      : kept.length > 0
        ? [{ label: strings.emojiRecent, rows: inRows(kept) }, ...named]
        : named;
  const rows = shown.flatMap((group) => group.rows);
  const tabStop = { row: Math.min(at.row, rows.length - 1), column: at.column };

  const pick = (emoji: string): void => {
    write(recentKey, [emoji, ...recent().filter((one) => one !== emoji)].slice(0, maxRecent));
    onPick(emoji);
  };
  const go = (row: number, column: number): void => {
    setAt({ row, column });
    const cells = box.current!.querySelectorAll('[role=row]')[row]!.querySelectorAll('button');
    const cell = cells[Math.min(column, cells.length - 1)]!;
    cell.focus();
    cell.scrollIntoView({ block: 'nearest' });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const inField = event.target === field.current;
    const cell = (event.target as HTMLElement).dataset;
    const [row, column] = [Number(cell['row']), Number(cell['column'])];
    const rtl = getComputedStyle(box.current!).direction === 'rtl';
    const last = rows.length - 1;
    const ends = event.ctrlKey || event.metaKey;
    const moves: Record<string, () => void> = {
      ArrowDown: () => row < last && go(row + 1, at.column),
      ArrowUp: () => (row > 0 ? go(row - 1, at.column) : field.current!.focus()),
      [rtl ? 'ArrowLeft' : 'ArrowRight']: () =>
        column < rows[row]!.length - 1 ? go(row, column + 1) : row < last && go(row + 1, 0),
      [rtl ? 'ArrowRight' : 'ArrowLeft']: () =>
        column > 0 ? go(row, column - 1) : row > 0 && go(row - 1, rows[row - 1]!.length - 1),
      Home: () => go(ends ? 0 : row, 0),
      End: () => go(ends ? last : row, rows[ends ? last : row]!.length - 1),
      PageDown: () => go(Math.min(last, row + pageRows), at.column),
      PageUp: () => go(Math.max(0, row - pageRows), at.column),
    };
    const move = moves[event.key];
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') onClose();
    else if (inField && event.key === 'ArrowDown') {
      if (last >= 0) go(0, 0);
    } else if (inField && event.key === 'Enter') {
      const first = rows[0]?.[0];
      if (first !== undefined && terms.length > 0) pick(first);
    } else if (!inField && cell['row'] !== undefined && move) move();
    else {
      // The letter itself goes into the field, which has the focus by the time it is typed.
      if (!inField && event.key.length === 1 && event.key !== ' ' && !ends && !event.altKey)
        field.current!.focus();
      return event.stopPropagation();
    }
    event.preventDefault();
    event.stopPropagation();
  };
  let row = -1;
  return (
    <div
      ref={box}
      className="parley-emoji"
      role="dialog"
      aria-label={strings.emoji}
      onKeyDown={onKeyDown}
      onBlur={(event) => {
        if (event.relatedTarget && !event.currentTarget.contains(event.relatedTarget)) onClose();
      }}
    >
      <label className="parley-search">
        <Icon name="search" size={15} />
        <input
          ref={field}
          type="search"
          value={query}
          placeholder={strings.emojiSearch}
          aria-label={strings.emojiSearch}
          autoComplete="off"
          onChange={(event) => {
            setQuery(event.target.value);
            setAt({ row: 0, column: 0 });
          }}
        />
      </label>
      <p className="parley-hidden" role="status">
        {terms.length > 0 ? strings.emojiFound(rows.flat().length) : ''}
      </p>
      {rows.length === 0 ? <p className="parley-empty">{strings.noMatch}</p> : null}
      <div role="grid" aria-label={strings.emoji}>
        {shown.map((group) => (
          <div key={group.label} role="rowgroup" aria-label={group.label}>
            {group.rows.map((cells) => {
              const index = ++row;
              return (
                <div key={index} role="row">
                  {cells.map((emoji, column) => (
                    <span key={emoji} role="gridcell">
                      <button
                        type="button"
                        data-row={index}
                        data-column={column}
                        tabIndex={index === tabStop.row && column === tabStop.column ? 0 : -1}
                        onClick={() => pick(emoji)}
                      >
                        {emoji}
                      </button>
                    </span>
                  ))}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      <div
        className="parley-tones"
        role="radiogroup"
        aria-label={strings.skinTone}
        onKeyDown={(event) => {
          const all = [...event.currentTarget.querySelectorAll('button')];
          if (!moveFocus(event, all, true) && !moveFocus(event, all, false)) return;
          (document.activeElement as HTMLElement).click();
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        {tones.map((_, i) => (
          <button
            key={i}
            type="button"
            role="radio"
            aria-checked={i === tone}
            aria-label={strings.skinTones[i]}
            title={strings.skinTones[i]}
            tabIndex={i === tone ? 0 : -1}
            onClick={() => {
              write(toneKey, tones[i]);
              setTone(i);
            }}
          >
            {toned(hand, i)}
          </button>
        ))}
      </div>
    </div>
  );
}
