// Made by `cargo xtask types` from the Rust types; changed there, not here.

export type SiteRole = "user" | "admin";

export type RoomRole = "member" | "admin" | "owner";

export type RoomKind = "group" | "private";

export type Scope = "read" | "write" | "agents" | "sources" | "dead-letters" | "metrics" | "admin";

export type MessageType = "text" | "agent_response";

export type MemberType = "user" | "agent";

export type SenderType = "user" | "agent" | "system";

export type NotificationPref = "all" | "mentions" | "none";

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

export type RoomBody = { name?: string, type?: RoomKind, broadcastMode?: boolean, 
/**
 * `null` takes it away; absent leaves it.
 */
systemPrompt?: string | null, agentCommandRole?: RoomRole, memberIds?: Array<string>, };

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

export type Room = { id: string, name: string, type: RoomKind, broadcastMode: boolean, systemPrompt: string | null, agentCommandRole: RoomRole, createdById: string, createdAt: string, updatedAt: string, routerId: string | null, };

export type RoomOfMember = { pinnedAt: string | null, archivedAt: string | null, clearedAt: string | null, lastReadAt: string | null, notificationPref: NotificationPref, role: RoomRole, roleDescription: string | null, id: string, name: string, type: RoomKind, broadcastMode: boolean, systemPrompt: string | null, agentCommandRole: RoomRole, createdById: string, createdAt: string, updatedAt: string, routerId: string | null, };

export type RoomWithMembers = { members: Array<Member>, totalMembers: number, id: string, name: string, type: RoomKind, broadcastMode: boolean, systemPrompt: string | null, agentCommandRole: RoomRole, createdById: string, createdAt: string, updatedAt: string, routerId: string | null, };

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

export type Recent = { content: string, senderName: string, createdAt: string, unread: number, };

export type Found = { ok: true, data: Array<Hit>, 
/**
 * There was more to look at than time; the next page goes on there.
 */
partial: boolean, nextCursor?: string, };

export type Hit = { 
/**
 * Plain text.
 */
snippet: string, highlights: Array<Highlight>, id: string, roomId: string, senderId: string, senderType: SenderType, senderName: string, type: MessageType, content: string, mentions: Array<string>, attachments: Array<Attachment>, reactions: Array<Reaction>, replyToId?: string, threadId?: string, metadata?: Metadata, clientMessageId?: string, createdAt: string, updatedAt?: string, editedAt?: string, seq: number, };

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

export type Agent = { id: string, name: string, description: string, type: string, status: string, visibility: string, createdAt: string, };

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

export type Message = { id: string, roomId: string, senderId: string, senderType: SenderType, senderName: string, type: MessageType, content: string, mentions: Array<string>, attachments: Array<Attachment>, reactions: Array<Reaction>, replyToId?: string, threadId?: string, metadata?: Metadata, clientMessageId?: string, createdAt: string, updatedAt?: string, editedAt?: string, seq: number, };

export type Reaction = { emoji: string, userIds: Array<string>, usernames: Array<string>, };

export type Metadata = { forwardedFrom: Forwarded, };

export type Forwarded = { messageId: string, senderId: string, senderType: SenderType, senderName: string, createdAt: string, };

export type RoomFrame = { id: string, name: string, type: RoomKind, broadcastMode: boolean, systemPrompt?: string, agentCommandRole: RoomRole, createdById: string, createdAt: string, updatedAt: string, };

export type MemberFrame = { roomId: string, memberId: string, memberType: MemberType, role: RoomRole, roleDescription?: string, notificationPref: NotificationPref, displayName: string, lastReadAt?: string, joinedAt: string, };
