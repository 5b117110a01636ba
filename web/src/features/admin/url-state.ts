import type { AuditFilter } from '@/api/admin'
import { oneOf, type Search, word } from '@/lib/search-params'

export const TABS = [
  ['users', 'Users'],
  ['projects', 'Projects'],
  ['audit', 'Audit log'],
] as const
export const OTHER_TABS = ['projects', 'audit'] as const

/** The state in the address: `?tab=audit&actor=usr_1&action=user.changed`. */
export interface AdminUrlState extends AuditFilter {
  tab?: (typeof OTHER_TABS)[number] | undefined
  /** The user of the tokens shown below the users. */
  user?: string | undefined
}

export type ChangeAdminUrl = (changes: Partial<AdminUrlState>) => void

export function parseAdminUrl(search: Search): AdminUrlState {
  return {
    tab: oneOf(OTHER_TABS, search.tab),
    user: word(search.user),
    actor: word(search.actor),
    action: word(search.action),
    subject: word(search.subject),
  }
}
