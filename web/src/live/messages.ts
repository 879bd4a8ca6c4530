/** From a message as the hub tells it to one as the page keeps it. */
import type { ChatMessage, ContentBlock, RunUsage, ToolBlock } from '../chat/state';
import type { Message, TurnDelivery } from '../generated/api';
import type { ReplyChunk } from './frames';

export function fromMessage(message: Message): ChatMessage {
  const { metadata, attachments } = message;
  const content = fromPieces(message.chunks ?? []);
  const tools = content.filter((block) => block.type === 'tool');
  const images = attachments.filter((file) => file.mimeType.startsWith('image/')).map((file) => file.url);
  return {
    role: message.senderType === 'agent' ? 'agent' : 'user',
    id: message.id,
    roomId: message.roomId,
    from: message.senderId,
    senderName: message.senderName,
    senderType: message.senderType,
    text: message.content,
    timestamp: message.createdAt,
    timestampMs: Date.parse(message.createdAt),
    seq: message.seq,
    mentions: message.mentions,
    attachments,
    reactions: message.reactions,
    ...(images.length > 0 && { images }),
    ...(content.length > 0 && { content }),
    ...(tools.length > 0 && { toolCount: tools.length, activityEntries: tools.map((tool) => tool.name) }),
    ...(message.clientMessageId !== undefined && { clientMessageId: message.clientMessageId }),
    ...(message.replyToId !== undefined && { replyToId: message.replyToId }),
    ...(message.threadId !== undefined && { threadId: message.threadId }),
    ...(message.editedAt !== undefined && { editedAt: message.editedAt }),
    ...(metadata?.forwardedFrom !== undefined && { forwardedFrom: metadata.forwardedFrom }),
    ...(metadata?.runId !== undefined && { runId: metadata.runId }),
    ...(metadata?.outcome !== undefined && { outcome: metadata.outcome }),
    isGenerating: false,
    isThinking: false,
  };
}

/** What a turn took, as its message shows it. */
export function runOf({ runId, inputTokens, outputTokens, costMicros, startedAt, endedAt }: TurnDelivery): RunUsage {
  const hasUsage = inputTokens + outputTokens > 0;
  const isOver = startedAt !== undefined && endedAt !== undefined;
  return {
    runId,
    durationMs: isOver ? Date.parse(endedAt) - Date.parse(startedAt) : undefined,
    usage: hasUsage ? { inputTokens, outputTokens, costMicros } : undefined,
  };
}

/** The pieces that are no text: what was thought and done on the way. */
export function fromPieces(pieces: ReplyChunk[]): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  for (const piece of pieces) {
    const last = blocks.at(-1);
    if (piece.type === 'thinking' && last?.type === 'thinking') last.text += piece.content;
    else if (piece.type === 'thinking') blocks.push({ type: 'thinking', text: piece.content });
    else if (piece.type === 'error') blocks.push({ type: 'error', text: piece.content });
    else if (piece.type === 'tool_use') blocks.push(toolOf(piece, blocks.length));
    else if (piece.type === 'tool_result') finish(blocks, piece);
  }
  return blocks;
}

export function toolOf(piece: ReplyChunk, index: number): ToolBlock {
  const name = word(piece.metadata?.['toolName']) ?? 'Tool';
  const id = word(piece.metadata?.['toolId']) ?? `${name}-${index}`;
  return { type: 'tool', id, name, input: piece.content, isRunning: false, progress: [] };
}

function finish(blocks: ContentBlock[], piece: ReplyChunk): void {
  const { id, isError } = resultOf(piece);
  const tool = blocks.findLast((block) => block.type === 'tool' && (id === undefined || block.id === id));
  if (tool?.type === 'tool') Object.assign(tool, { output: piece.content, isError });
}

export function resultOf(piece: ReplyChunk): { id: string | undefined; isError: boolean } {
  return { id: word(piece.metadata?.['toolId']), isError: piece.metadata?.['isError'] === true };
}

function word(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
