// @vitest-environment jsdom
import { expect, test } from 'vitest'

import type { EnrolmentInfo } from '@/api/types'

import { invitationState } from './invitations-section'

const CODE = { expires_at: '2026-11-25T12:00:00Z', used_at: null, revoked_at: null } as unknown as EnrolmentInfo
const BEFORE = Date.parse('2026-11-25T11:59:59Z')
const THEN = Date.parse('2026-11-25T12:00:00Z')

test('a code is open until it expires, is used or is revoked', () => {
  expect([invitationState(CODE, BEFORE), invitationState(CODE, THEN)]).toEqual(['open', 'expired'])
  const at = '2026-11-25T10:00:00Z'
  expect(invitationState({ ...CODE, used_at: at }, THEN)).toBe('used')
  expect(invitationState({ ...CODE, revoked_at: at }, THEN)).toBe('revoked')
})
