import { useEffect, useRef } from 'react';
import type { KeyboardEvent } from 'react';
import { useStrings } from '../hooks/context.ts';

/** The platform's own emoji, and few of them: a table of all would weigh more than the rest of the kit. */
const groups = [
  '😀 😃 😄 😁 😆 😅 😂 🤣 🙂 🙃 😉 😊 😇 🥰 😍 😘 😋 😜 🤪 🤗 🤭 🤔 🤐 😐 😏 🙄 😬 😌 😔 😴 🤒 🥳 😎 🤓 😕 😟 😮 😳 🥺 😢 😭 😱 😤 😡 🤯 🥶 🤝',
  '👍 👎 👌 🤞 ✌️ 🤘 👈 👉 👆 👇 👋 ✋ 👏 🙌 🙏 💪 👀 🧠 ❤️ 🧡 💛 💚 💙 💜 🖤 🤍 💔 💯 ✅ ❌ ❓ ❗ ⚠️ 🔥 ✨ ⭐ 🎉 🎂 🎁',
  '🐶 🐱 🐻 🦊 🐝 🌱 🌲 🌻 🍎 🍋 🍓 🥕 🍞 🧀 🍕 🍰 ☕ 🍵 🍺 🍷 ⚽ 🎮 🎵 🎧 📷 💡 🔋 💻 📱 📎 📌 📅 📦 📬 ✏️ 🔑 🔨 🚗 🚲 ✈️ 🚀 🏠 ⏰ ☀️ 🌧️ ❄️',
].map((group) => group.split(' '));
const columns = 8;

export default function EmojiPicker({
  onPick,
  onClose,
}: {
  onPick: (emoji: string) => void;
  onClose: () => void;
}) {
  const strings = useStrings();
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.querySelector('button')?.focus(), []);
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = [...box.current!.querySelectorAll('button')];
    const at = all.indexOf(event.target as HTMLButtonElement);
    const rtl = getComputedStyle(box.current!).direction === 'rtl' ? -1 : 1;
    const steps: Record<string, number> = {
      ArrowRight: rtl,
      ArrowLeft: -rtl,
      ArrowDown: columns,
      ArrowUp: -columns,
      Home: -at,
      End: all.length - 1 - at,
    };
    const step = steps[event.key];
    if (event.key === 'Escape') onClose();
    else if (step === undefined) return;
    else {
      const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
      next?.focus();
      next?.scrollIntoView({ block: 'nearest' });
    }
    event.preventDefault();
    event.stopPropagation();
  };
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
      {groups.map((group, i) => (
        <div key={i} role="group" aria-label={strings.emojiGroups[i]}>
          {group.map((emoji) => (
            <button
              key={emoji}
              type="button"
              tabIndex={i === 0 && emoji === group[0] ? 0 : -1}
              onClick={() => onPick(emoji)}
            >
              {emoji}
            </button>
          ))}
        </div>
      ))}
    </div>
  );
}
