import type { CSSProperties } from 'react';
import { useParley } from '../hooks/context.ts';
import type { UploadItem, UploadView } from '../hooks/upload.ts';
import { Icon, Path } from './icon.tsx';

const retry = 'M21 12a9 9 0 1 1-9-9c2.52 0 4.93 1 6.74 2.74L21 8M21 3v5h-5';

/** The files of a message that is being written. */
export default function Chips({ uploads }: { uploads: UploadView }) {
  return (
    <ul className="parley-chips">
      {uploads.items.map((item) => (
        <AttachmentChip key={item.key} item={item} onRemove={uploads.remove} onRetry={uploads.retry} />
      ))}
    </ul>
  );
}

export interface ChipProps {
  item: UploadItem;
  onRemove: (key: string) => void;
  onRetry: (key: string) => void;
}
export function AttachmentChip({ item, onRemove, onRetry }: ChipProps) {
  const { strings } = useParley();
  const { file, status, progress, preview } = item;
  const percent = Math.round(progress * 100);
  const style = { '--parley-progress': `${status === 'uploading' ? percent : 0}%` } as CSSProperties;
  return (
    <li className="parley-chip" data-state={status} style={style}>
      {preview ? <img src={preview} alt="" width={34} height={30} /> : null}
      <bdi>{file.name}</bdi>
      {status === 'uploading' ? <small>{strings.percent(percent)}</small> : null}
      {status === 'failed' ? (
        <>
          <small role="alert">{strings.uploadFailed}</small>
          <button type="button" aria-label={strings.retry} onClick={() => onRetry(item.key)}>
            <Path d={retry} size={14} />
          </button>
        </>
      ) : null}
      <button type="button" aria-label={strings.remove(file.name)} onClick={() => onRemove(item.key)}>
        <Icon name="close" size={14} />
      </button>
    </li>
  );
}
