import { FileText } from 'lucide-react';
import { useEffect, useState } from 'react';
import { file } from '../api/http';
import type { Attachment } from '../generated/api';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { Dialog } from '../ui/dialog';
import { bytes } from '../text';

export function Attachments({ attachments }: { attachments: Attachment[] }) {
  if (attachments.length === 0) return null;
  return (
    <ul className="mt-1.5 flex flex-wrap gap-2">
      {attachments.map((attachment) => (
        <li key={attachment.id}>
          {attachment.mimeType.startsWith('image/') ? (
            <Picture attachment={attachment} />
          ) : (
            <Download attachment={attachment} />
          )}
        </li>
      ))}
    </ul>
  );
}

/** Downloads a file with the access token and returns an object URL, because files have no public URL. */
function useFile(url: string): string | undefined {
  const [shown, setShown] = useState<string>();
  useEffect(() => {
    let objectUrl: string | undefined;
    let isUnmounted = false;
    void file(url).then(
      (blob) => {
        if (isUnmounted) return;
        objectUrl = URL.createObjectURL(blob);
        setShown(objectUrl);
      },
      () => undefined,
    );
    return () => {
      isUnmounted = true;
      if (objectUrl !== undefined) URL.revokeObjectURL(objectUrl);
    };
  }, [url]);
  return shown;
}

function Picture({ attachment }: { attachment: Attachment }) {
  const url = useFile(attachment.url);
  const [isLarge, setLarge] = useState(false);
  const name = escapeHidden(attachment.filename);
  return (
    <>
      <button
        type="button"
        aria-label={name}
        title={name}
        onClick={() => setLarge(true)}
        className="block h-48 max-w-full min-w-24 overflow-hidden rounded-xl border bg-code"
      >
        {url !== undefined && <img src={url} alt={name} className="h-full max-w-full object-contain" />}
      </button>
      {isLarge && url !== undefined && (
        <Dialog open onClose={() => setLarge(false)} title={name} className="top-[4vh] max-h-[92vh] w-auto max-w-[94vw]">
          <img src={url} alt={name} className="max-h-[76vh] rounded-lg" />
        </Dialog>
      )}
    </>
  );
}

function Download({ attachment }: { attachment: Attachment }) {
  const name = escapeHidden(attachment.filename);
  const save = async () => {
    const url = URL.createObjectURL(await file(attachment.url));
    const link = Object.assign(document.createElement('a'), { href: url, download: attachment.filename });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <button
      type="button"
      onClick={() => void save()}
      className="flex max-w-72 items-center gap-2.5 rounded-xl border bg-raised px-3 py-2 text-left hover:border-line-strong"
    >
      <FileText size={20} className="shrink-0 text-accent" strokeWidth={1.6} />
      <span className="min-w-0">
        <span className="block truncate text-sm font-medium">{name}</span>
        <span className="block text-xs text-faint">{bytes(attachment.size)}</span>
      </span>
    </button>
  );
}
