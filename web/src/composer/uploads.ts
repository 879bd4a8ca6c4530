/** Uploads of files that were dropped, pasted or picked for the next message. */
import { useState, type DragEvent } from 'react';
import { apiResult, RequestProblem } from '../api/http';
import type { Attachment } from '../generated/api';
import { text } from '../text';

export interface Upload {
  key: string;
  name: string;
  attachment?: Attachment;
  problem?: string;
}

export function useUploads() {
  const [uploads, setUploads] = useState<Upload[]>([]);
  const add = (files: Iterable<File>) => {
    for (const file of files) {
      const key = `${file.name}-${file.size}-${Math.random()}`;
      setUploads((now) => [...now, { key, name: file.name }]);
      void send(file).then((sent) =>
        setUploads((now) => now.map((upload) => (upload.key === key ? { ...upload, ...sent } : upload))),
      );
    }
  };
  const remove = (key: string) => setUploads((now) => now.filter((upload) => upload.key !== key));
  const attachments = uploads.flatMap(({ attachment }) => (attachment === undefined ? [] : [attachment]));
  const isUploading = uploads.some(({ attachment, problem }) => attachment === undefined && problem === undefined);
  return { uploads, add, remove, clear: () => setUploads([]), attachments, isUploading };
}

async function send(file: File): Promise<Pick<Upload, 'attachment' | 'problem'>> {
  const form = new FormData();
  form.append('file', file);
  try {
    return { attachment: await apiResult<Attachment>('POST', '/api/upload', form) };
  } catch (failure) {
    return { problem: failure instanceof RequestProblem ? failure.message : text.failed };
  }
}

/** Event handlers and state of an element onto which files can be dropped. */
export function useDropTarget() {
  const [depth, setDepth] = useState(0);
  const [files, setFiles] = useState<File[]>([]);
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes('Files');
  return {
    isOver: depth > 0,
    files,
    takeFiles: () => setFiles([]),
    onDragEnter: (event: DragEvent) => hasFiles(event) && setDepth((now) => now + 1),
    onDragLeave: (event: DragEvent) => hasFiles(event) && setDepth((now) => Math.max(0, now - 1)),
    onDragOver: (event: DragEvent) => hasFiles(event) && event.preventDefault(),
    onDrop: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDepth(0);
      setFiles([...event.dataTransfer.files]);
    },
  };
}
