// @vitest-environment jsdom
import { afterEach, expect, test } from 'vitest'

import { isForPage, keyTarget, press } from './keyboard'

const KNOWN = ['/', 'g e', 'g a']

afterEach(() => {
  document.body.replaceChildren()
})

test('a single key is completed at once, a sequence with its last key', () => {
  expect(press('', '/', KNOWN)).toEqual({ completed: '/', begun: '' })
  expect(press('', 'g', KNOWN)).toEqual({ completed: undefined, begun: 'g' })
  expect(press('g', 'e', KNOWN)).toEqual({ completed: 'g e', begun: '' })
})

test('another key breaks a sequence off, and counts itself', () => {
  expect(press('g', 'x', KNOWN)).toEqual({ completed: undefined, begun: '' })
  expect(press('g', '/', KNOWN)).toEqual({ completed: '/', begun: '' })
  expect(press('g', 'g', KNOWN)).toEqual({ completed: undefined, begun: 'g' })
  expect(press('', 'e', KNOWN)).toEqual({ completed: undefined, begun: '' })
})

/** True if a key pressed in the only element of `html` belongs to a shortcut. */
function pressedIn(html: string, init: KeyboardEventInit = { key: '/' }): boolean | undefined {
  document.body.innerHTML = html
  let answer: boolean | undefined
  document.addEventListener(
    'keydown',
    (event) => {
      answer = isForPage(event)
    },
    { once: true },
  )
  document.body.firstElementChild?.dispatchEvent(new KeyboardEvent('keydown', { bubbles: true, ...init }))
  return answer
}

test.each(['<input>', '<textarea></textarea>', '<select></select>', '<p contenteditable="true"></p>'])(
  'what is typed in %s is text, except Escape',
  (field) => {
    expect(pressedIn(field)).toBe(false)
    expect(pressedIn(field, { key: 'Escape' })).toBe(true)
  },
)

test('keys of the browser and below a dialog are left alone', () => {
  expect(pressedIn('<p></p>')).toBe(true)
  expect(pressedIn('<p></p>', { key: '/', ctrlKey: true })).toBe(false)
  expect(pressedIn('<p></p>', { key: '/', metaKey: true })).toBe(false)
  expect(pressedIn('<p></p><dialog open></dialog>')).toBe(false)
})

test.each([
  ['ArrowRight', 0, 1],
  ['ArrowRight', 5, 0],
  ['ArrowLeft', 0, 5],
  ['Home', 3, 0],
  ['End', 3, 5],
  ['a', 3, undefined],
])('%s from %d leads to %s of six', (key, index, target) => {
  expect(keyTarget(key, index, 6)).toBe(target)
})
