// @vitest-environment jsdom
import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, test } from 'vitest'

import Markdown from './markdown'

afterEach(cleanup)

function html(text: string): string {
  return render(<Markdown text={text} />).container.innerHTML
}

test('emphasis, lists, code, tables and links are shown as such', () => {
  const text =
    '**Twice** the `K`.\n\n- one\n- [x] two\n\n| K | loss |\n|---|---|\n| 8 | 2.1 |\n\n[paper](https://example.org/a)'
  const shown = html(text)
  expect(shown).toContain('<strong>Twice</strong> the <code>K</code>')
  expect(screen.getAllByRole('listitem').map(({ textContent }) => textContent.trim())).toEqual(['one', '☑ two'])
  expect(screen.getByRole('cell', { name: '2.1' })).toBeTruthy()
  expect(screen.getByRole('link', { name: 'paper' }).getAttribute('href')).toBe('https://example.org/a')
})

test('headings are below the page’s own, and take no id of the page', () => {
  html('# Aim\n\n## Setting')
  expect(screen.getByRole('heading', { name: 'Aim', level: 3 }).id).toBe('')
  expect(screen.getByRole('heading', { name: 'Setting', level: 4 })).toBeTruthy()
})

test.each([
  '<img src=x onerror=alert(1)>',
  'a <script>alert(1)</script> b',
  '<iframe src="/x"></iframe>',
  '<a href="javascript:alert(1)">x</a>',
  '<style>*{display:none}</style>',
  '<svg onload=alert(1)>',
])('%s stays text', (text) => {
  const { container } = render(<Markdown text={text} />)
  expect(container.querySelector('img, script, iframe, style, svg, a')).toBeNull()
  expect(container.textContent).toContain(text.slice(0, 4))
})

test.each([
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](java&#x73;cript:alert(1))',
  '[x](data:text/html,<script>alert(1)</script>)',
  '[x](vbscript:x)',
  '[x](//evil.example)',
  '[x][1]\n\n[1]: javascript:alert(1)',
])('%s leads nowhere', (text) => {
  const { container } = render(<Markdown text={text} />)
  expect(container.querySelector('a')).toBeNull()
})

test('a picture of another server is a link, since the page loads nothing from there', () => {
  const { container } = render(<Markdown text="![curve](https://evil.example/pixel.png)" />)
  expect(container.querySelector('img')).toBeNull()
  expect(screen.getByRole('link', { name: 'curve' })).toBeTruthy()
})
