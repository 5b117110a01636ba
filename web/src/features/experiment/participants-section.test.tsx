// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen, within } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { Participant } from '@/api/types'

import { ParticipantsSection } from './participants-section'

const AT = '2026-11-21T12:30:00Z'
const CLINIC: Participant = {
  id: 'par_1',
  name: 'clinic-7',
  display_name: 'clinic-7',
  group: null,
  public_key: null,
  created_at: AT,
  seen_at: AT,
  revoked_at: null,
  revoked_for: null,
}

let participants: Participant[]

beforeEach(() => {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ items: participants, next_cursor: null })))
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

async function visit(found: Participant[]) {
  participants = found
  render(
    <QueryClientProvider client={new QueryClient()}>
      <ParticipantsSection id="exp_1" />
    </QueryClientProvider>,
  )
  return within(await screen.findByTestId('participants'))
}

test('a participant is shown by its name in any script, apart from the text around it', async () => {
  const long = 'é'.repeat(200)
  const section = await visit([
    { ...CLINIC, name: 'site-5d556e03', display_name: 'مستشفى الأمل' },
    { ...CLINIC, id: 'par_2', name: 'long', display_name: long, revoked_at: AT, revoked_for: 'left' },
    { ...CLINIC, id: 'par_3', group: 'כללית' },
  ])
  const name = section.getByText('مستشفى الأمل')
  expect([name.tagName, name.dir]).toEqual(['BDI', 'auto'])
  expect(section.getByText('site-5d556e03').tagName).toBe('CODE')
  expect(section.getByText(long).closest('tr')?.textContent).toContain('revokedleft')
  expect(section.getAllByText('clinic-7')).toHaveLength(1)
  expect(section.getByText('כללית').tagName).toBe('BDI')
})
