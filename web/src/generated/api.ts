// Made by `cargo xtask types` from the Rust types; changed there, not here.

export type SiteRole = "user" | "admin";

export type RoomRole = "member" | "admin" | "owner";

export type RoomKind = "group" | "private";

export type RoomPolicy = "mention" | "triage" | "all";

export type TaskStatus = "pending" | "in_progress" | "input_required" | "completed" | "failed" | "cancelled";

export type Scope = "read" | "write" | "agents" | "hosting" | "sources" | "dead-letters" | "metrics" | "admin";

export type MessageType = "text" | "agent_response";

export type MemberType = "user" | "agent";

export type SenderType = "user" | "agent" | "system";

export type NotificationPref = "all" | "mentions" | "none";

export type AgentVisibility = "private" | "all" | "whitelist";

export type DecisionWord = "allow" | "deny" | "timeout";

export type RouterScope = "personal" | "global";

export type ServiceAgentType = "openai-chat" | "anthropic-chat";

export type ServiceAgentStatus = "active" | "inactive";

export type ServiceAgentCategory = "chat";

export type ModelApi = "openai" | "anthropic";

export type LimitKind = "budget" | "rate" | "connection" | "size";

export type LimitUnit = "count" | "bytes" | "seconds";

export type Login = { username: string, password: string, };

export type RefreshBody = { refreshToken?: string, };

export type SetUp = { token: string, username: string, password: string, displayName?: string, };

export type NewUser = { username: string, password: string, displayName?: string, role?: SiteRole, };

export type UserChanges = { displayName?: string, role?: SiteRole, password?: string, 
/**
 * `null` takes the override away; absent leaves it.
 */
maxConnections?: number | null, 
/**
 * Patterns of paths: what this person's agents hear of outside sources.
 */
hears?: Array<string>, };

export type Profile = { displayName?: string, 
/**
 * `null` takes the picture away; absent leaves it.
 */
avatarUrl?: string | null, };

export type PasswordChange = { currentPassword: string, newPassword: string, };

export type NewKey = { name: string, scopes: Array<Scope>, };

export type NewInvitation = { role?: SiteRole, 
/**
 * In seconds from now; a week if neither this nor a time is given, at most a year.
 */
expiresIn?: number, expiresAt?: string, 
/**
 * How many can take it: 1 if left out.
 */
uses?: number, 
/**
 * For whom it is.
 */
note?: string, };

export type PairingExchange = { code: string, 
/**
 * What the machine is called; the key bears this name.
 */
name?: string, };

export type RouterBody = { name?: string, 
/**
 * `personal` if left out; `global` ones are for everybody, and admins make them.
 */
scope?: RouterScope, 
/**
 * How the model is spoken to: `openai` if left out.
 */
llmApi?: ModelApi, llmBaseUrl?: string, 
/**
 * `null` takes it away. With another address it must be given again.
 */
llmApiKey?: string | null, llmModel?: string, };

export type ServiceAgentBody = { name?: string, 
/**
 * How the model is spoken to: `openai-chat` if left out.
 */
type?: ServiceAgentType, description?: string, status?: ServiceAgentStatus, config?: ServiceAgentSettings, };

export type ServiceAgentSettings = { 
/**
 * The provider's own if left out.
 */
baseUrl?: string, 
/**
 * `null` takes it away. With another address it must be given again.
 */
apiKey?: string | null, model?: string, 
/**
 * Another model of the same server, asked when the first does not answer. `null` takes it away.
 */
fallbackModel?: string | null, 
/**
 * What the agent is to be. `null` takes it away.
 */
systemPrompt?: string | null, 
/**
 * The most that an answer may have. `null` takes it away.
 */
maxTokens?: number | null, };

export type Registration = { token: string, username: string, password: string, displayName?: string, };

export type NewSettings = { hubName?: string | null, invitations?: boolean | null, lockoutFailures?: number | null, lockoutSeconds?: number | null, };

export type ChangedSettings = { changes: NewSettings, };

export type TotpLogin = { totpToken: string, 
/**
 * Six digits, or a backup code.
 */
code: string, };

export type TotpCode = { code: string, };

export type PasswordProof = { password: string, };

export type RoomBody = { name?: string, type?: RoomKind, 
/**
 * `true` stands for the policy `triage`, `false` for `mention`.
 */
broadcastMode?: boolean, policy?: RoomPolicy, 
/**
 * `null` takes it away; absent leaves it.
 */
systemPrompt?: string | null, agentCommandRole?: RoomRole, approveRole?: RoomRole, 
/**
 * Who picks the agents that answer, under the policy `triage`; `null` takes it away.
 */
routerId?: string | null, memberIds?: Array<string>, };

export type NewMember = { memberId: string, memberType?: MemberType, role?: RoomRole, roleDescription?: string, };

export type MemberChanges = { role?: RoomRole, 
/**
 * `null` takes it away; absent leaves it.
 */
roleDescription?: string | null, };

export type NewMessage = { content: string, mentions?: Array<string>, replyToId?: string, attachmentIds?: Array<string>, clientMessageId?: string, };

export type MessageEdit = { content: string, };

export type MessageList = { messageIds: Array<string>, };

export type ForwardTo = { targetRoomId: string, clientMessageId?: string, };

export type NewReaction = { emoji: string, };

export type NewBookmark = { messageId: string, };

export type Notify = { pref: NotificationPref, };

export type NewAgent = { 
/**
 * What its gateway will register it as; one is made up where it is left out.
 */
id?: string, name: string, description?: string, type?: string, visibility?: AgentVisibility, visibilityList?: Array<string>, };

export type AgentChanges = { name?: string, description?: string, visibility?: AgentVisibility, 
/**
 * Ids of people, for `whitelist`.
 */
visibilityList?: Array<string>, };

export type NewDecision = { decision: DecisionWord, 
/**
 * Also for every later question about this tool of this agent in this room.
 */
allowAlways?: boolean, denyReason?: string, 
/**
 * That of the input that was looked at; if it is another, nothing is decided.
 */
inputDigest?: string, };

export type NewTask = { title: string, description?: string, dueDate?: string, assigneeId?: string, 
/**
 * `user` where it is left out.
 */
assigneeType?: MemberType, };

export type TaskChanges = { title?: string, description?: string | null, status?: TaskStatus, result?: string | null, dueDate?: string | null, assigneeId?: string | null, assigneeType?: MemberType, };

export type NewSpawn = { gatewayId: string, agentType: string, name: string, workingDirectory?: string, 
/**
 * Which of those that the gateway keeps the agent is to use.
 */
credentialId?: string, };

export type Success<T> = { ok: true, data: T, };

export type Done = { ok: true, };

export type User = { id: string, username: string, displayName: string, avatarUrl: string | null, role: SiteRole, totpEnabled: boolean, createdAt: string, updatedAt: string, };

export type ManagedUser = { maxConnections: number | null, hears: Array<string>, locked: boolean, id: string, username: string, displayName: string, avatarUrl: string | null, role: SiteRole, totpEnabled: boolean, createdAt: string, updatedAt: string, };

export type Person = { id: string, username: string, displayName: string, avatarUrl: string | null, };

export type SignedIn = { accessToken: string, refreshToken: string, user: User, };

export type LoginAnswer = SignedIn | TotpRequired;

export type TotpRequired = { 
/**
 * Always true.
 */
totpRequired: boolean, 
/**
 * For `verify-totp` and nothing else, for five minutes.
 */
totpToken: string, };

export type AuditPage = { 
/**
 * Newest first.
 */
items: Array<AuditEntry>, hasMore: boolean, nextCursor?: string, };

export type AuditEntry = { id: string, at: string, actor: AuditActor, action: string, subject?: AuditSubject, detail?: string, address?: string, 
/**
 * How often, where repeats are counted together, and when for the last time.
 */
count: number, lastAt: string, };

export type AuditActor = { 
/**
 * `user`, `key`, `operator` or `nobody`.
 */
kind: string, id?: string, name?: string, keyId?: string, };

export type AuditSubject = { 
/**
 * `user`, `agent`, `room`, `key` or `invitation`.
 */
kind: string, id: string, name?: string, };

export type Settings = { 
/**
 * What devices with a second factor show, among others.
 */
hubName: string, 
/**
 * Whether invitations can be made and taken.
 */
invitations: boolean, 
/**
 * So many wrong passwords or codes in a row lock an account.
 */
lockoutFailures: number, lockoutSeconds: number, };

export type Limit = { 
/**
 * The name of the setting that decides about it.
 */
key: string, kind: LimitKind, unit: LimitUnit, 
/**
 * `null` where there is none.
 */
value: number | null, 
/**
 * What is limited, in the words of the settings.
 */
about: string, };

export type TotpSetup = { 
/**
 * In base 32, for typing.
 */
secret: string, 
/**
 * For a QR code.
 */
uri: string, };

export type BackupCodes = { 
/**
 * Each good for one sign-in, shown this once.
 */
backupCodes: Array<string>, };

export type Tokens = { accessToken: string, refreshToken?: string, };

export type OauthProvider = string;

export type Session = { id: string, device: string, address: string, createdAt: string, lastUsedAt: string, expiresAt: string, current: boolean, };

export type Key = { id: string, name: string, scopes: Array<Scope>, createdAt: string, };

export type CreatedKey = { 
/**
 * The secret, shown this once.
 */
key: string, id: string, name: string, scopes: Array<Scope>, createdAt: string, };

export type Invitation = { id: string, role: SiteRole, note: string | null, uses: number, usesLeft: number, 
/**
 * `null` if whoever runs the hub made it.
 */
createdById: string | null, createdAt: string, expiresAt: string, };

export type CreatedInvitation = { 
/**
 * The secret, shown this once.
 */
token: string, 
/**
 * The page on which it is taken; the secret comes after the `#`, which browsers keep to themselves.
 */
url: string, id: string, role: SiteRole, note: string | null, uses: number, usesLeft: number, 
/**
 * `null` if whoever runs the hub made it.
 */
createdById: string | null, createdAt: string, expiresAt: string, };

export type PairingCode = { 
/**
 * Such as `BCDF-GHJK-LMNP`.
 */
code: string, expiresAt: string, 
/**
 * What to type on the other machine.
 */
command: string, };

export type Router = { id: string, name: string, scope: RouterScope, llmApi: ModelApi, llmBaseUrl: string, 
/**
 * Asterisks where there is one: a key is never shown again.
 */
llmApiKey: string | null, llmModel: string, createdById: string, createdAt: string, updatedAt: string, };

export type RouterTest = { success: boolean, 
/**
 * Why not.
 */
error?: string, };

export type ServiceAgent = { 
/**
 * Of the agent that it is.
 */
id: string, name: string, type: ServiceAgentType, category: ServiceAgentCategory, description: string, status: ServiceAgentStatus, config: ServiceAgentConfig, createdById: string, createdAt: string, updatedAt: string, };

export type ServiceAgentConfig = { baseUrl: string, 
/**
 * Never the key itself.
 */
apiKey?: string, model: string, fallbackModel?: string, systemPrompt?: string, maxTokens?: number, };

export type ServiceProvider = { type: ServiceAgentType, displayName: string, category: ServiceAgentCategory, description: string, 
/**
 * What `config` may hold, as a JSON Schema.
 */
configSchema: unknown, };

export type ServiceValidation = { valid: boolean, 
/**
 * Why not.
 */
error?: string, };

export type Room = { id: string, name: string, type: RoomKind, 
/**
 * Whether `policy` is another than `mention`.
 */
broadcastMode: boolean, policy: RoomPolicy, systemPrompt: string | null, agentCommandRole: RoomRole, approveRole: RoomRole, frozenAt?: string, 
/**
 * Absent if it was whoever runs the hub.
 */
frozenBy?: string, createdById: string, createdAt: string, updatedAt: string, routerId: string | null, 
/**
 * The folder on the hub's machine that it is about.
 */
projectRoot?: string, };

export type RoomOfMember = { pinnedAt: string | null, archivedAt: string | null, clearedAt: string | null, lastReadAt: string | null, notificationPref: NotificationPref, role: RoomRole, roleDescription: string | null, id: string, name: string, type: RoomKind, 
/**
 * Whether `policy` is another than `mention`.
 */
broadcastMode: boolean, policy: RoomPolicy, systemPrompt: string | null, agentCommandRole: RoomRole, approveRole: RoomRole, frozenAt?: string, 
/**
 * Absent if it was whoever runs the hub.
 */
frozenBy?: string, createdById: string, createdAt: string, updatedAt: string, routerId: string | null, 
/**
 * The folder on the hub's machine that it is about.
 */
projectRoot?: string, };

export type RoomWithMembers = { members: Array<Member>, totalMembers: number, id: string, name: string, type: RoomKind, 
/**
 * Whether `policy` is another than `mention`.
 */
broadcastMode: boolean, policy: RoomPolicy, systemPrompt: string | null, agentCommandRole: RoomRole, approveRole: RoomRole, frozenAt?: string, 
/**
 * Absent if it was whoever runs the hub.
 */
frozenBy?: string, createdById: string, createdAt: string, updatedAt: string, routerId: string | null, 
/**
 * The folder on the hub's machine that it is about.
 */
projectRoot?: string, };

export type Member = { roomId: string, memberId: string, memberType: MemberType, role: RoomRole, notificationPref: NotificationPref, displayName: string, lastReadAt: string | null, joinedAt: string, roleDescription: string | null, pinnedAt: string | null, archivedAt: string | null, clearedAt: string | null, };

export type Members = { ok: true, data: Array<Member>, pagination: Pagination, };

export type Pagination = { limit: number, offset: number, total: number, };

export type Users = { ok: true, data: Array<ManagedUser>, total: number, };

export type Repeated = Message | DeletedMessage;

export type DeletedMessage = { id: string, seq: number, deleted: boolean, };

export type History = { items: Array<Message>, hasMore: boolean, 
/**
 * Where the next page begins.
 */
nextCursor?: string, };

export type RecentRooms = { [key in string]: Recent };

export type Recent = { content: string, senderName: string, createdAt: string, unread: number, 
/**
 * How many of these mention the caller.
 */
mentions: number, };

export type Found = { ok: true, data: Array<Hit>, 
/**
 * There was more to look at than time; the next page goes on there.
 */
partial: boolean, nextCursor?: string, };

export type Hit = { 
/**
 * Plain text.
 */
snippet: string, highlights: Array<Highlight>, id: string, roomId: string, senderId: string, senderType: SenderType, senderName: string, type: MessageType, content: string, mentions: Array<string>, attachments: Array<Attachment>, reactions: Array<Reaction>, replyToId?: string, threadId?: string, metadata?: Metadata, chunks: Array<Chunk>, clientMessageId?: string, createdAt: string, updatedAt?: string, editedAt?: string, seq: number, };

export type Highlight = { start: number, end: number, };

export type Revision = { messageId: string, previousContent: string, editedAt: string, };

export type Thread = { ok: true, data: Array<Message>, 
/**
 * Where the next page begins.
 */
nextCursor?: string, };

export type ReplyCount = { count: number, };

export type Deleted = { 
/**
 * How many.
 */
deleted: number, };

export type Approval = { id: string, roomId: string, runId: string, agentId: string, agentName: string, toolName: string, 
/**
 * To the letter as the agent's side gave it.
 */
toolInput: Record<string, unknown>, 
/**
 * SHA-256 of the input in its canonical form, in hexadecimal digits.
 */
inputDigest: string, askedAt: string, expiresAt: string, decision?: DecisionWord, };

export type ApprovalRule = { agentId: string, toolName: string, createdById: string, createdAt: string, };

export type PinnedMessage = { messageId: string, roomId: string, pinnedById: string, pinnedAt: string, message: Message, };

export type Bookmark = { 
/**
 * That of the message: there is one for each.
 */
id: string, messageId: string, createdAt: string, message: Message, };

export type Bookmarks = { items: Array<Bookmark>, hasMore: boolean, 
/**
 * Where the next page begins.
 */
nextCursor?: string, };

export type Pinned = { pinned: boolean, };

export type Archived = { archived: boolean, };

export type Cleared = { clearedAt: string, };

export type Notified = { pref: NotificationPref, };

export type Agent = { id: string, name: string, description: string, 
/**
 * `claude-code`, `codex`, `gemini` or `generic`.
 */
type: string, 
/**
 * `online`, `offline`, `busy` or `error`.
 */
status: string, visibility: AgentVisibility, 
/**
 * Whom it is shared with by name, for its owner.
 */
visibilityList: Array<string>, capabilities: Array<string>, connectionType: string, gatewayId: string | null, workingDirectory: string | null, model: string | null, slashCommands?: unknown[], mcpServers?: unknown[], lastSeenAt: string | null, createdAt: string, updatedAt: string, deviceInfo?: DeviceInfo, ownerId: string, ownerName: string, };

export type DeviceInfo = { hostname: string, platform: string, arch: string, nodeVersion: string, };

export type Task = { id: string, roomId: string, title: string, description?: string, status: TaskStatus, result?: string, dueDate?: string, assigneeId?: string, assigneeType?: MemberType, createdById: string, createdByType: MemberType, createdAt: string, updatedAt: string, };

export type Gateway = { id: string, name: string, online: boolean, connectedAt: string, disconnectedAt: string | null, hostname: string, platform: string, arch: string, nodeVersion: string, };

export type Spawning = { requestId: string, };

export type Avatar = { 
/**
 * The same as `url`, under the name that profiles have for it.
 */
avatarUrl: string, id: string, filename: string, mimeType: string, size: number, url: string, };

export type Link = { url: string, expiresAt: string, };

export type Health = { ok: boolean, status: string, timestamp: string, version: string, checks: Checks, };

export type Checks = { store: string, };

export type Problem = { ok: false, error: string, code?: string, fields?: Array<Field>, 
/**
 * Where the log is now, for one whose place in it is no longer known.
 */
position?: string, };

export type Field = { field: string, message: string, };

export type Attachment = { id: string, filename: string, mimeType: string, size: number, url: string, };

export type Message = { id: string, roomId: string, senderId: string, senderType: SenderType, senderName: string, type: MessageType, content: string, mentions: Array<string>, attachments: Array<Attachment>, reactions: Array<Reaction>, replyToId?: string, threadId?: string, metadata?: Metadata, chunks: Array<Chunk>, clientMessageId?: string, createdAt: string, updatedAt?: string, editedAt?: string, seq: number, };

export type Chunk = { type: string, content: string, metadata: Record<string, unknown>, };

export type Reaction = { emoji: string, userIds: Array<string>, usernames: Array<string>, };

export type TurnDelivery = { runId: string, agentId: string, agentName: string, roomId: string, 
/**
 * What set it off.
 */
messageId?: string, 
/**
 * `queued`, `delivered` to the gateway, `started`, `answered`, `failed`, `cancelled`, `interrupted` or `refused`.
 */
status: string, 
/**
 * Why it was refused.
 */
reason?: string, 
/**
 * `direct` when it was named, `broadcast` when the room's policy asked it.
 */
routingMode: string, conversationId: string, depth: number, replyId?: string, inputTokens: number, outputTokens: number, 
/**
 * In millionths of a dollar, where the agent told it.
 */
costMicros?: number, queuedAt: string, startedAt?: string, endedAt?: string, };

export type Metadata = { forwardedFrom?: Forwarded, 
/**
 * The turn in which an agent said it.
 */
runId?: string, 
/**
 * `complete`, `failed`, `cancelled` or `interrupted`.
 */
outcome?: string, };

export type Forwarded = { messageId: string, senderId: string, senderType: SenderType, senderName: string, createdAt: string, };

export type RoomFrame = { id: string, name: string, type: RoomKind, broadcastMode: boolean, policy: RoomPolicy, systemPrompt?: string, agentCommandRole: RoomRole, approveRole: RoomRole, routerId?: string, frozenAt?: string, frozenBy?: string, projectRoot?: string, createdById: string, createdAt: string, updatedAt: string, };

export type MemberFrame = { roomId: string, memberId: string, memberType: MemberType, role: RoomRole, roleDescription?: string, notificationPref: NotificationPref, displayName: string, lastReadAt?: string, joinedAt: string, };
