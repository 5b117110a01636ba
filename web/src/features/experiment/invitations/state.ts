import type { EnrolmentInfo } from '@/api/types'

export type InvitationState = 'open' | 'used' | 'revoked' | 'expired'

/** What became of a code. */
export function invitationState(code: EnrolmentInfo, now: number): InvitationState {
  if (code.used_at !== null) return 'used'
  if (code.revoked_at !== null) return 'revoked'
  return Date.parse(code.expires_at) <= now ? 'expired' : 'open'
}
