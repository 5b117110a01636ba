// Before the first paint, and no part of the bundle, which comes later; src/lib/theme.ts does the rest.
;(function () {
  let theme = null
  try {
    theme = localStorage.getItem('ferret.theme')
  } catch {
    // A browser that keeps nothing for this site.
  }
  const systemIsDark = matchMedia('(prefers-color-scheme: dark)').matches
  const dark = theme === 'dark' || (theme !== 'light' && systemIsDark)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
})()
