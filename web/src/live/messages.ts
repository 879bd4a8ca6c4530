/** Converts messages and runs from the hub's format to that of the chat state. */
import type { LoggedMessage } from '../chat/message';
import type { ContentBlock, ToolBlock } from '../chat/parts';
import type { RunUsage } from '../chat/state';
import type { Chunk, Message, TurnDelivery } from '../generated/api';

export function fromMessage(message: Message): LoggedMessage {
  const { metadata, senderType } = message;
  const logged = {
    state: 'stored' as const,
    id: message.id,
    roomId: message.roomId,
    from: message.senderId,
    senderName: message.senderName,
    text: message.content,
    timestamp: message.createdAt,
    timestampMs: Date.parse(message.createdAt),
    seq: message.seq,
    mentions: message.mentions,
    attachments: message.attachments,
    reactions: message.reactions,
    ...(message.clientMessageId !== undefined && { clientMessageId: message.clientMessageId }),
    ...(message.replyToId !== undefined && { replyToId: message.replyToId }),
    ...(message.threadId !== undefined && { threadId: message.threadId }),
    ...(message.editedAt !== undefined && { editedAt: message.editedAt }),
    ...(metadata?.forwardedFrom !== undefined && { forwardedFrom: metadata.forwardedFrom }),
    ...(metadata?.relayed !== undefined && { relayed: metadata.relayed }),
  };
  if (senderType !== 'agent') return { ...logged, role: 'user', senderType };
  return {
    ...logged,
    role: 'agent',
    senderType,
    content: fromChunks(message.chunks ?? []),
    ...(metadata?.runId !== undefined && { runId: metadata.runId }),
    ...(metadata?.outcome !== undefined && { outcome: metadata.outcome }),
  };
}

/** Duration and token usage of a run. */
export function runOf({ runId, inputTokens, outputTokens, costMicros, startedAt, endedAt }: TurnDelivery): RunUsage {
  const hasUsage = inputTokens + outputTokens > 0;
  const isOver = startedAt !== undefined && endedAt !== undefined;
  return {
    runId,
    durationMs: isOver ? Date.parse(endedAt) - Date.parse(startedAt) : undefined,
    usage: hasUsage ? { inputTokens, outputTokens, costMicros } : undefined,
  };
}

/** Content blocks of a reply: its thinking, tool and error chunks. */
export function fromChunks(chunks: Chunk[]): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  for (const chunk of chunks) {
    const last = blocks.at(-1);
    if (chunk.type === 'thinking' && last?.type === 'thinking') last.text += chunk.content;
    else if (chunk.type === 'thinking') blocks.push({ type: 'thinking', text: chunk.content });
    else if (chunk.type === 'error') blocks.push({ type: 'error', text: chunk.content });
    else if (chunk.type === 'tool_use') blocks.push(toolOf(chunk, blocks.length));
    else if (chunk.type === 'tool_result') finish(blocks, chunk);
  }
  return blocks;
}

export function toolOf(chunk: Chunk, index: number): ToolBlock {
  const name = nonEmptyString(chunk.metadata?.['toolName']) ?? 'Tool';
  const id = nonEmptyString(chunk.metadata?.['toolId']) ?? `${name}-${index}`;
  return { type: 'tool', id, name, input: chunk.content, isRunning: false, progress: [] };
}

function finish(blocks: ContentBlock[], chunk: Chunk): void {
  const { id, isError } = resultOf(chunk);
  const tool = blocks.findLast((block) => block.type === 'tool' && (id === undefined || block.id === id));
  if (tool?.type === 'tool') Object.assign(tool, { output: chunk.content, isError });
}

export function resultOf(chunk: Chunk): { id: string | undefined; isError: boolean } {
  return { id: nonEmptyString(chunk.metadata?.['toolId']), isError: chunk.metadata?.['isError'] === true };
}

function nonEmptyString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
