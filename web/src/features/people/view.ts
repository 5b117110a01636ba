import type { AuditFilter } from '@/api/audit'
import { oneOf, type Search } from '@/lib/search-params'

export const TABS = [
  ['users', 'Users'],
  ['audit', 'Audit log'],
] as const

/** What the address holds: `?tab=audit&actor=usr_1&action=user.changed`. */
export interface View extends AuditFilter {
  tab?: 'audit' | undefined
}

export type ChangeView = (changes: Partial<View>) => void

export function parseView(search: Search): View {
  return {
    tab: oneOf(['audit'], search.tab),
    actor: word(search.actor),
    action: word(search.action),
    subject: word(search.subject),
  }
}

function word(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
