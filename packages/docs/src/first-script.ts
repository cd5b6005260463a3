/**
 * Runs before anything is shown: sets the theme, and says that there is a script. It stands in the page, because a file
 * would come too late; the policy allows it by its hash.
 */
export const firstScript = `((e)=>{e.classList.add('js');let t;try{t=localStorage.getItem('parley-docs-theme')}catch{}e.dataset.theme=t||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light')})(document.documentElement)`;
